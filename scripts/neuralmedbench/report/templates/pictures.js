// Pictures of a case: previews, and a dialog that shows them large. A picture stands on the page once, whichever cases show it.
const viewer = document.getElementById("enlarged");
// sequence, plane and window without the level and the size of the lesion: pictures alike in it are one stack
const stackOf = (label) => label.split(", ").filter((part) => !/ mm$|^lesion /.test(part)).join(", ");
// the label without a sequence that nobody knows
const labelOf = ([, label]) => label.split(", ").filter((part) => part !== "unknown").join(", ");
const wordsOf = (image, place, images) => `${labelOf(image) || "no label"}, picture ${place + 1} of ${images.length}`;
const sourceOf = ([digest]) => {
  const held = document.getElementById(`picture-${digest}`);
  return held && `data:image/webp;base64,${held.textContent}`;
};

function enlarge(images, place) {
  const [label, image] = [wordsOf(images[place], place, images), viewer.querySelector("img")];
  viewer.dataset.place = place;
  image.src = sourceOf(images[place]) ?? "";
  image.alt = label;
  viewer.querySelector("figcaption b").textContent = visible(label);
  const stacks = [...new Set(images.map(([, one]) => stackOf(one)))];
  const stack = images.flatMap(([, one], at) => (stackOf(one) === stackOf(images[place][1]) ? [at] : []));
  const step = (list, from, by) => list[(list.indexOf(from) + by + list.length) % list.length];
  viewer.steps = {
    ArrowLeft: () => step(stack, place, -1),
    ArrowRight: () => step(stack, place, 1),
    ArrowUp: () => images.findIndex(([, one]) => stackOf(one) === step(stacks, stackOf(images[place][1]), -1)),
    ArrowDown: () => images.findIndex(([, one]) => stackOf(one) === step(stacks, stackOf(images[place][1]), 1)),
  };
  viewer.images = images;
  for (const button of viewer.querySelectorAll("[data-step]")) button.disabled = (/Left|Right/.test(button.dataset.step) ? stack : stacks).length < 2;
  image.decode().catch(() => undefined).then(() => {
    viewer.querySelector("figcaption span").textContent = image.naturalWidth ? `${image.naturalWidth} × ${image.naturalHeight} pixels on this page; models were sent the original` : "not on the machine that made this page";
  });
  if (!viewer.open) viewer.showModal();
}
const stepTo = (key) => enlarge(viewer.images, viewer.steps[key]());
viewer.addEventListener("keydown", (event) => {
  if (!viewer.steps?.[event.key]) return;
  event.preventDefault();
  stepTo(event.key);
});
viewer.addEventListener("click", ({ target }) => {
  if (target.dataset.step) stepTo(target.dataset.step);
  else if (target === viewer || target.closest(".close")) viewer.close();
});

function pictureElement(image, place, images) {
  const [source, label] = [sourceOf(image), wordsOf(image, place, images)];
  const caption = (attributes) => (labelOf(image) ? [free("figcaption", attributes, labelOf(image))] : []);
  if (!source) return make("figure", {}, "not on the machine that made this page", ...caption({}));
  const button = make("button", { type: "button", class: "picture" }, make("img", { src: source, alt: label }));
  button.addEventListener("click", () => enlarge(images, place));
  return make("figure", {}, button, ...caption({ "aria-hidden": "true" }));
}
