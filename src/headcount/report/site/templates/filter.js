// Filters of the claims page. Without JavaScript all claims are shown.
(function () {
  "use strict";
  const form = document.querySelector(".filters");
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
      const fits = (!wanted.paper || tags.paper === wanted.paper) && (!wanted.kind || tags.kind === wanted.kind)
        && (!wanted.outcome || tags.outcome.split("|").includes(wanted.outcome))
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
