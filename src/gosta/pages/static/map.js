// What the maps of both pages have in common: arrow keys move to the nearest node in their direction.
"use strict";

const ARROWS = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

// The nearest node in a direction, [right, down], from a node; null: there is none. `placeOf` gives pixels.
function towards([right, down], from, count, placeOf) {
  const [x, y] = placeOf(from);
  let nearest = null,
    least = Infinity;
  for (let k = 0; k < count; k++) {
    const [dx, dy] = [placeOf(k)[0] - x, placeOf(k)[1] - y];
    const along = dx * right + dy * down,
      beside = Math.abs(dx * down) + Math.abs(dy * right);
    if (k !== from && along > 0.5 && along + 2 * beside < least) [nearest, least] = [k, along + 2 * beside];
  }
  return nearest;
}
