"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const unpacked = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer;
  const numbers = (text) => new Float32Array(unpacked(text));
  const moves = data.moves.map((text) => new Int32Array(unpacked(text)));
  const inputs = data.inputs.map(numbers);
  for (const network of Object.values(data.networks)) {
    for (const layer of network.layers) {
      if (layer.kind === "linear") {
        layer.weight = numbers(layer.weight);
        layer.bias = numbers(layer.bias);
      }
    }
  }

  const linear = (layer, x) => {
    const size = x.length;
    return layer.bias.map((bias, i) => {
      let sum = bias;
      for (let j = 0, at = i * size; j < size; j++, at++) sum += layer.weight[at] * x[j];
      return sum;
    });
  };
  const pool = (size, x) => {
    const out = new Float32Array(x.length / size);
    for (let i = 0; i < out.length; i++) {
      let best = -Infinity;
      for (let k = 0; k < size; k++) best = Math.max(best, x[i * size + k]);
      out[i] = best;
    }
    return out;
  };
  const softmax = (x) => {
    const top = Math.max(...x);
    const powers = Array.from(x, (v) => Math.exp(v - top));
    const total = powers.reduce((a, b) => a + b, 0);
    return powers.map((v) => v / total);
  };
  const predict = (which, x) => {
    let values = Float32Array.from(x);
    for (const layer of data.networks[which].layers) {
      if (layer.kind === "linear") values = linear(layer, values);
      else if (layer.kind === "relu") values = values.map((v) => Math.max(0, v));
      else values = pool(layer.size, values);
    }
    return softmax(values);
  };

  const dim = data.shape.reduce((a, b) => a * b, 1);
  const image = data.shape.length > 1;
  const [height, width] = image ? data.shape.slice(-2) : [64, dim];
  const canvas = document.getElementById("input");
  canvas.width = width;
  canvas.height = height;
  const pen = canvas.getContext("2d");
  const bright = (v) => 255 * Math.min(1, Math.max(0, (v - data.low) / (data.high - data.low)));
  let x = new Float32Array(dim);
  let before = null;

  const show = () => {
    const picture = pen.createImageData(width, height);
    const colours = data.shape.length === 3 && data.shape[0] === 3;
    for (let i = 0; i < width * height; i++) {
      const pixel = [0, 1, 2].map((c) => {
        if (image) return bright(x[colours ? c * width * height + i : i]);
        const level = 1 - Math.floor(i / width) / height;
        return bright(x[i % width]) / 255 >= level ? 220 : 20;
      });
      picture.data.set([...pixel, 255], 4 * i);
    }
    pen.putImageData(picture, 0, 0);
  };
  const bars = (which, p) => {
    document.querySelectorAll(`[data-network="${which}"] .row`).forEach((row, k) => {
      row.querySelector(".fill").style.width = `${100 * p[k]}%`;
      row.lastElementChild.textContent = p[k].toFixed(3);
    });
    const best = p.indexOf(Math.max(...p));
    document.getElementById(`best-${which}`).textContent = `${data.classes[best]} (${p[best].toFixed(3)})`;
  };
  const update = (moved) => {
    show();
    const now = {};
    for (const which of Object.keys(data.networks)) {
      now[which] = predict(which, x);
      bars(which, now[which]);
      const change = moved && before ? Math.max(...now[which].map((v, k) => Math.abs(v - before[which][k]))) : 0;
      document.getElementById(`change-${which}`).textContent = moved
        ? `the last move changed a probability by at most ${change.toFixed(4)}`
        : "";
    }
    before = now;
  };

  const pick = document.getElementById("pick");
  pick.addEventListener("change", () => {
    x = Float32Array.from(inputs[Number(pick.value)]);
    update(false);
  });
  document.querySelectorAll("button[data-move]").forEach((button) => {
    button.addEventListener("click", () => {
      const index = moves[Number(button.dataset.move)];
      x = Float32Array.from(index, (i) => (i < dim ? x[i] : -x[i - dim]));
      update(true);
    });
  });
  const clear = document.getElementById("clear");
  if (clear) {
    clear.addEventListener("click", () => {
      x = new Float32Array(dim).fill(data.low);
      update(false);
    });
    const paint = (event) => {
      if (event.type === "pointermove" && event.buttons === 0) return;
      const box = canvas.getBoundingClientRect();
      const [u, v] = [((event.clientX - box.left) / box.width) * width, ((event.clientY - box.top) / box.height) * height];
      const reach = Math.max(0.8, Math.min(width, height) / 20);
      for (let row = 0; row < height; row++) {
        for (let column = 0; column < width; column++) {
          const far = Math.hypot(column + 0.5 - u, row + 0.5 - v);
          const ink = data.low + (data.high - data.low) * Math.min(1, Math.max(0, 1.5 - far / reach));
          x[row * width + column] = Math.max(x[row * width + column], ink);
        }
      }
      update(false);
    };
    canvas.addEventListener("pointerdown", paint);
    canvas.addEventListener("pointermove", paint);
  }
  x = Float32Array.from(inputs[0]);
  update(false);
  window.invariantnet = { predict, input: () => Array.from(x) };
})();
