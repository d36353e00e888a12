"use strict";
// Which tokens are together after the layer chosen: on the image, in the words, or by position.
(function () {
  const { add } = Page, place = Page.find("clusters");
  if (!place) return;
  const { colours, inputs } = Page.data("clusters-data");
  const colour = (cluster) => `var(--${colours[cluster] || "grey"})`;
  const named = (cluster) => (cluster < 0 ? "alone" : `cluster ${cluster + 1}`);

  const drawings = inputs.map((input, number) => {
    const figure = add(place, "figure"), id = `said-input-${number}`;
    const marks = input.side ? onImage(input, figure, id) : inLine(input, figure);
    const said = add(figure, "figcaption", { id, className: "small" });
    return { input, marks, said };
  });

  // A square of patches behind CLS and registers, which have no place on the image.
  function onImage({ side, picture, clusters }, figure, id) {
    figure.className = "images";
    const svg = Page.make("svg", { viewBox: `0 0 ${side} ${side}`, role: "img", "aria-labelledby": id }, figure);
    Page.make("image", { href: picture, width: side, height: side, preserveAspectRatio: "none" }, svg);
    const first = clusters[0].length - side * side;
    return clusters[0].slice(first).map((_, k) => {
      const mark = Page.make("rect", { x: k % side, y: Math.floor(k / side), width: 1, height: 1 }, svg);
      const title = Page.make("title", {}, mark);
      return { token: first + k, set: (cluster) => {
        mark.setAttribute("style", cluster < 0 ? "fill: transparent" : `fill: ${colour(cluster)}`);
        title.textContent = `row ${Math.floor(k / side) + 1}, column ${(k % side) + 1}: ${named(cluster)}`;
      } };
    });
  }

  function inLine({ words, clusters }, figure) {
    const line = add(figure, "p");
    return clusters[0].map((_, token) => {
      const mark = add(line, "span", { className: "token" });
      add(mark, "span", { textContent: words ? words[token] : token });
      const sub = add(mark, "sub");
      line.append(" ");
      return { token, set: (cluster) => {
        if (cluster < 0) mark.removeAttribute("style");
        else mark.style.setProperty("--colour", colour(cluster));
        sub.textContent = cluster < 0 ? "" : cluster + 1;
        mark.title = `token ${token}: ${named(cluster)}`;
      } };
    });
  }

  function follow(layer) {
    drawings.forEach(({ input, marks, said }, number) => {
      const found = input.clusters[layer], joined = found.filter((cluster) => cluster >= 0);
      for (const { token, set } of marks) set(found[token]);
      const special = found.slice(0, found.length - marks.length).map((cluster, k) => ` Token ${k}: ${named(cluster)}.`);
      said.textContent = `Input ${number + 1}, ${layer ? `layer ${layer}` : "in front of all"}: ${joined.length} of `
        + `${found.length} tokens are in ${new Set(joined).size} ${new Set(joined).size === 1 ? "cluster" : "clusters"}.${special.join("")}`;
    });
  }

  Report.followers.push(follow);
  follow(Report.layer());
}());
