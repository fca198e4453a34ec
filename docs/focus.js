// Wide tables and code scroll: they must be reached with the keyboard too.
(function () {
  "use strict";
  function mark() {
    for (const part of document.querySelectorAll(".md-typeset__scrollwrap, .md-typeset pre > code, .formula, .output"))
      part.setAttribute("tabindex", "0");
    // The theme leaves the search without a name, and several landmarks with the same one.
    const names = { ".md-search": "Search", ".md-path": "Path of this page" };
    for (const [place, name] of Object.entries(names))
      for (const part of document.querySelectorAll(place)) if (part.ariaLabel !== name) part.ariaLabel = name;
    document.querySelectorAll(".md-code__nav").forEach(function (part, number) {
      if (part.ariaLabel !== "Code " + (number + 1)) part.ariaLabel = "Code " + (number + 1);
    });
    document.querySelectorAll(".md-nav[aria-labelledby]").forEach(function (part, number) {
      const label = document.getElementById(part.getAttribute("aria-labelledby"));
      part.removeAttribute("aria-labelledby");
      part.ariaLabel = (label ? label.textContent.trim() : "Section") + " (" + (number + 1) + ")";
    });
  }
  new MutationObserver(mark).observe(document.documentElement, { childList: true, subtree: true });
  document.addEventListener("DOMContentLoaded", mark);
})();
