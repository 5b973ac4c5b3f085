// Terms that explain themselves when they are hovered, tapped or focused.

import { $ } from "./state.js";

const TERMS = {
  index: "The averaging index of a network: 1 if every neuron has the same share of all clusters of its side, 0 if each neuron has one cluster of its own.",
  cosine: "The cosine of the angle between the centre of a cluster and the weights of a neuron or a piece: 1 if they point the same way, 0 if they are orthogonal.",
  loss: "What training makes small: the mean over the training points, large where the network is wrong or unsure.",
  accuracy: "The share of fresh points, not used in training, that are put on the right side.",
  robust: "The share of fresh points that no perturbation of this norm turns. It is computed exactly, not by an attack that may fail.",
  radius: "The norm of the smallest perturbation that turns a point: the distance to the nearest point with another decision.",
  lambda: "λ, the coefficients of the features: how much of each centre is in the weights of each neuron.",
  margin: "The margin of a training point: the output for its own label, minus the largest other one. Above 0 the point is learned.",
  time: "The learning rate times the number of steps, on a logarithmic axis: training slows down the longer it goes on.",
  own: "Centres that a neuron is for: those of its side, or with finer labels that of its cluster.",
  other: "Centres that a neuron is not for.",
  growth: "Late in training the coefficients grow like the logarithm of time: lines of this slope.",
  exact: "The smallest perturbation of all that turns this point; proven, not searched for by an attack.",
  averaged: "One direction for all points: from the centres of one side to those of the other. It turns a network that averages almost as fast as the smallest perturbation.",
  law: "The granularity law: the radius of a point whose label is shared by q clusters, where q′ is the largest number of clusters that share a label of the other side.",
  circle: "No perturbation inside the circle turns the point. Both pictures have one scale, so the circles can be compared.",
};

/** An inline term of the glossary. */
export function term(name, text) {
  const element = document.createElement("dfn");
  element.dataset.term = name;
  element.textContent = text;
  return prepared(element);
}

function prepared(element) {
  element.classList.add("term");
  element.tabIndex = 0;
  element.setAttribute("role", "button");
  return element;
}

const explanation = (element) => element.dataset.explain ?? TERMS[element.dataset.term];

function show(element) {
  const box = element.getBoundingClientRect(), note = $("explanation");
  note.textContent = explanation(element);
  note.hidden = false;
  const wide = note.getBoundingClientRect();
  note.style.left = `${Math.max(8, Math.min(box.left, innerWidth - wide.width - 8))}px`;
  const isBelow = box.bottom + wide.height + 8 < innerHeight;
  note.style.top = `${isBelow ? box.bottom + 6 : box.top - wide.height - 6}px`;
  element.setAttribute("aria-describedby", "explanation");
}

function hide() {
  $("explanation").hidden = true;
  document.querySelector("[aria-describedby=explanation]")?.removeAttribute("aria-describedby");
}

/** Explain the terms of the page, also those that are added later, and the names of the controls. */
export function connectGlossary() {
  document.querySelectorAll("[data-term]").forEach(prepared);
  for (const row of document.querySelectorAll(".knob[title], .choice[title]")) {
    const label = row.querySelector("label");
    const symbol = label.querySelector("i") ?? document.createElement("i");
    prepared(symbol).setAttribute("aria-label", `what is ${label.textContent}?`);
    symbol.dataset.explain = row.title;
    row.removeAttribute("title");
    if (symbol.parentElement) continue;
    symbol.textContent = "?";
    label.append(symbol);
  }
  const found = (event) => (event.target instanceof Element ? event.target.closest(".term") : null);
  addEventListener("pointerover", (event) => { if (event.pointerType !== "touch" && found(event)) show(found(event)); });
  addEventListener("pointerout", (event) => { if (event.pointerType !== "touch" && found(event)) hide(); });
  addEventListener("focusin", (event) => { if (found(event)) show(found(event)); else hide(); });
  addEventListener("focusout", hide);
  addEventListener("scroll", hide, { passive: true });
  addEventListener("click", (event) => {
    const element = found(event);
    if (!element) { hide(); return; }
    event.preventDefault(); // in the label of a field, a click would go to the field
    show(element);
  });
  addEventListener("keydown", (event) => { if (event.key === "Escape") hide(); });
}
