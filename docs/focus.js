// Wide tables and code scroll: they must be reached with the keyboard too.
(function () {
  "use strict";
  function mark() {
    for (const part of document.querySelectorAll(".md-typeset__scrollwrap, .md-typeset pre > code, .formula, .output"))
      part.setAttribute("tabindex", "0");
  }
  new MutationObserver(mark).observe(document.documentElement, { childList: true, subtree: true });
  document.addEventListener("DOMContentLoaded", mark);
})();
