// Filters of the claims pages, and keys: / to the search, arrows to the pages beside this one.
// Without JavaScript all claims are shown.
(function () {
  "use strict";
  const form = document.querySelector(".filters");
  document.addEventListener("keydown", function (event) {
    const typing = event.target.closest("input, select, textarea, [tabindex]:not(main)");
    if (event.ctrlKey || event.metaKey || event.altKey || typing) return;
    if (event.key === "/" && form) {
      event.preventDefault();
      form.elements.words.focus();
    }
    const beside = { ArrowLeft: "prev", ArrowRight: "next" }[event.key];
    const link = beside && document.querySelector("a[rel=" + beside + "]");
    if (link) link.click();
  });
  if (!form) return;
  form.hidden = false;
  const claims = Array.from(document.querySelectorAll(".claim"));
  const count = document.getElementById("count");
  function apply() {
    const wanted = Object.fromEntries(new FormData(form));
    const words = (wanted.words || "").toLowerCase();
    let seen = 0;
    for (const claim of claims) {
      const tags = claim.dataset;
      const fits = (!wanted.kind || tags.kind === wanted.kind)
        && (!wanted.outcome || tags.outcome === wanted.outcome)
        && (!wanted.mark || tags.marks.split("|").includes(wanted.mark))
        && (!words || claim.textContent.toLowerCase().includes(words));
      claim.hidden = !fits;
      seen += fits;
    }
    count.textContent = seen + " of " + claims.length + " claims";
  }
  const asked = new URLSearchParams(location.hash.slice(1));
  for (const [name, value] of asked) if (form.elements[name]) form.elements[name].value = value;
  form.addEventListener("input", apply);
  form.addEventListener("submit", function (event) { event.preventDefault(); });
  apply();
})();
