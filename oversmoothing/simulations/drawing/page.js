"use strict";
// What every page shares. Everything hangs on the one name Page, so that a test can call it.
const Page = {};

Page.find = (id) => document.getElementById(id);

// The JSON of a script element.
Page.data = (id) => JSON.parse(Page.find(id).textContent);

Page.number = (x, digits = 3) => {
  if (Number.isNaN(x)) return "undefined";
  if (!Number.isFinite(x)) return x > 0 ? "\u221e" : "\u2212\u221e";
  return x.toFixed(digits).replace("-", "\u2212");
};

// An element of HTML, the last in its parent.
Page.add = (parent, tag, more = {}) => Object.assign(parent.appendChild(document.createElement(tag)), more);

// An element of SVG.
Page.make = function (tag, attributes, parent, text = "") {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.textContent = text;
  if (parent) parent.appendChild(element);
  return element;
};

// The place of a pointer in the units of an SVG.
Page.within = (svg, event) =>
  new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());

// Who reads on paper cannot open what is folded.
{
  let opened = [];
  window.addEventListener("beforeprint", () => {
    opened = Array.from(document.querySelectorAll("details:not([open])"));
    for (const each of opened) each.open = true;
  });
  window.addEventListener("afterprint", () => { for (const each of opened) each.open = false; });
}
