"use strict";
// A ledger of claims: its filters, and links that open a claim.
Page.claims = function () {
  const find = Page.find;
  const claims = Array.from(document.querySelectorAll(".claim"));
  const words = claims.map((claim) => claim.textContent.toLowerCase());
  // A long table begins with the claims that matter most.
  const all = find("all");
  const few = claims.some((claim) => "first" in claim.dataset);
  const fields = ["by-status", "by-kind", "by-source", "by-words"];
  function filter() {
    const [status, kind, of, text] = fields.map((id) => find(id).value);
    const asked = text.toLowerCase().split(/\s+/).filter(Boolean);
    const every = !few || all.getAttribute("aria-pressed") === "true" || status || kind || of || text;
    let shown = 0;
    claims.forEach((claim, k) => {
      const fits = (every || "first" in claim.dataset) && (!status || claim.dataset.status === status)
        && (!kind || claim.dataset.kinds.split("|").includes(kind))
        && (!of || claim.dataset.of === of) && asked.every((word) => words[k].includes(word));
      claim.hidden = !fits;
      shown += fits ? 1 : 0;
    });
    find("shown").textContent = `${shown} of ${claims.length} shown`;
  }
  // A link to a claim opens it, whatever was filtered away.
  function open() {
    const claim = window.location.hash.startsWith("#claim-") && find(window.location.hash.slice(1));
    if (!claim) return;
    claim.hidden = false;
    (claim.querySelector("details") || claim).open = true;
    claim.scrollIntoView();
  }
  window.addEventListener("hashchange", open);
  // A page of one claim has no filters.
  if (find("shown")) {
    for (const id of fields) find(id).addEventListener("input", filter);
    all.hidden = !few;
    all.addEventListener("click", () => {
      const pressed = all.getAttribute("aria-pressed") !== "true";
      all.setAttribute("aria-pressed", pressed);
      all.textContent = pressed ? "Show fewer" : "Show all";
      filter();
    });
    filter();
  }
  open();
};
if (document.querySelector(".claim")) Page.claims();
