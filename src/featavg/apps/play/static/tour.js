// The strip above the pictures: one sentence on what is seen, and a tour of four steps.

import { fixed, number } from "./format.js";
import { draw } from "./panels.js";
import { source } from "./source.js";
import { $, isTraining, measured, networks, newest, state, title, visible } from "./state.js";

// all numbers are those of the time that is shown, as in the panels
const both = () => networks().length === 2;
const index = (name) => fixed(visible()?.[name]?.index, 2);
const median = (name) => number(measured().radii?.[name]?.median, 3);
const time = (frame) => number(frame[networks()[0]].steps, 4);
const hasPresets = () => state.about.presets.length > 1;
const more = (count, one, many) => `${count} more ${count === 1 ? one : many}`;

const STEPS = [
  {
    title: "The data",
    panels: ["panel-intro"],
    text() {
      const { clusters, samples, positive } = state.described.values;
      const hidden = clusters - (state.data?.clusters.length ?? Math.min(clusters, 4));
      return `${number(samples, 5)} points come in ${clusters} clusters: ${positive} on the positive side, `
        + `${clusters - positive} on the negative one. Shown are the first two of each side, projected onto their centres, `
        + `which point in different directions${hidden > 0 ? `; ${more(hidden, "cluster lies", "clusters lie")} in directions of their own` : ""}. `
        + `Of each point one network is told ${state.described.told.coarse} (above or below the dashed line), the other ${state.described.told.fine}.`;
    },
  },
  {
    title: "What the neurons learned",
    panels: ["panel-coarse", "panel-fine"],
    text: () => "A column is a neuron, a row is a cluster; bright means that they point the same way. "
      + (both() && visible() !== null
        ? `The averaging index is 1 where every neuron mixes all clusters of its side, and 0 where each has one of its own: it is ${index("coarse")} `
          + `for the ${title("coarse")} network and ${index("fine")} for the ${title("fine")} network.`
        : source.isLesson ? "" : "Train with both kinds of labels to compare them."),
  },
  {
    title: "How far the nearest turn is",
    panels: ["panel-slice"],
    text() {
      const { coarse, fine } = state.slices;
      return "Within the circle nothing turns this fresh point; the green arrow is the smallest perturbation that does. "
        + (coarse && fine
          ? `The two pictures ${state.shown === null ? "" : `are of t = ${time(newest())} and `}have one scale: ${number(coarse.radius, 3)} for the ${title("coarse")} network, ${number(fine.radius, 3)} for the ${title("fine")} network. `
            + `The dashed arrow is one direction for all points, from one side to the other. Try another point.`
          : "It is computed where training ends or pauses.");
    },
  },
  {
    title: "What finer labels change",
    panels: ["panel-robust"],
    text() {
      const { formulas } = state.described;
      const { radii, isOld } = measured();
      return (both() && radii
        ? `${isOld ? `At t = ${time(newest())}, half` : "Half"} of the fresh points are turned within ${median("coarse")} for the ${title("coarse")} network and within ${median("fine")} for the ${title("fine")} network. `
        : "Half of the fresh points are turned where a curve crosses 50 %. ")
        + `Theory says ${formulas.coarse} for sides alone and ${formulas.fine} for a label of each cluster: the more clusters, the more finer labels gain. `
        + advice();
    },
  },
];

function advice() {
  if (!source.isLesson) return "Drag the radius, then change k and train again.";
  return hasPresets() ? "Drag the radius, then choose another preset." : "Drag the radius, then drag the time back.";
}

let step = null; // of the tour; null outside it

/** Write the strip: the step of the tour, or the sentence on what is seen. */
export function showIntroduction() {
  const now = step === null ? null : STEPS[step];
  $("intro-title").textContent = now ? `${step + 1} of ${STEPS.length}: ${now.title}` : "What you see";
  $("intro-text").textContent = now ? now.text() : sentence();
  $("tour").hidden = now !== null;
  for (const id of ["tour-back", "tour-next", "tour-end"]) $(id).hidden = now === null;
  $("tour-back").disabled = step === 0;
  $("tour-next").hidden = now === null || step === STEPS.length - 1;
  $("data").hidden = step !== 0;
  document.body.classList.toggle("touring", now !== null);
  for (const panel of document.querySelectorAll(".panel")) {
    panel.classList.toggle("spot", now !== null && (panel.id === "panel-intro" || now.panels.includes(panel.id)));
  }
}

function sentence() {
  if (isTraining()) return `${both() ? "Both networks are learning from the same points" : "The network is learning"}; watch the pictures form.`;
  const seen = visible(), { radii, isOld } = measured();
  if (!seen || !radii) return "Guess what the neurons will learn, then press Train.";
  const { told } = state.described;
  const averages = both() && !isOld && seen.coarse.index > 0.8 && seen.fine.index < 0.2;
  const numbers = (name) => `an averaging index of ${index(name)}${isOld ? "" : ` and a median radius of ${median(name)}`}`;
  const words = averages
    ? `Told of each point ${told.coarse}, the ${title("coarse")} network mixes the clusters of a side and is turned within ${median("coarse")}; `
      + `told ${told.fine}, the ${title("fine")} network keeps them apart and withstands ${median("fine")}.`
    : networks().map((name) => `The ${title(name)} network has ${numbers(name)}.`).join(" ");
  const when = state.shown === null ? "" : `This is t = ${time(seen)}. `;
  return `${when}${words} Try: drag the radius, ${hasPresets() ? "choose a preset, " : ""}or take the tour.`;
}

function go(to) {
  step = to;
  showIntroduction();
  draw("data");
  if (step === null) return;
  const isNarrow = matchMedia("(max-width: 760px)").matches; // there the strip is below the panel
  $(STEPS[step].panels[0]).scrollIntoView({ block: isNarrow ? "start" : "nearest", behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
}

export function connectTour() {
  $("tour").addEventListener("click", () => { go(0); $("tour-next").focus(); });
  $("tour-next").addEventListener("click", () => { go(step + 1); if (step === STEPS.length - 1) $("tour-end").focus(); });
  $("tour-back").addEventListener("click", () => go(step - 1));
  $("tour-end").addEventListener("click", () => { go(null); $("tour").focus(); });
  addEventListener("keydown", (event) => { if (event.key === "Escape" && step !== null) go(null); });
}
