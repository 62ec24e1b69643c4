"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const unpacked = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer;
  const numbers = (text) => new Float32Array(unpacked(text));
  const moves = data.moves.map((text) => new Int32Array(unpacked(text)));
  const inputs = data.inputs.map(numbers);
  const half = (bits) => {
    const [sign, power, rest] = [bits >> 15 ? -1 : 1, (bits >> 10) & 31, bits & 1023];
    return sign * (power ? 2 ** (power - 15) * (1 + rest / 1024) : 2 ** -14 * (rest / 1024));
  };
  const weights = (layer) => (layer.half ? Float32Array.from(new Uint16Array(unpacked(layer.weight)), half) : numbers(layer.weight));
  for (const network of Object.values(data.networks)) {
    for (const layer of [...network.body, ...(network.head || [])]) {
      if (layer.weight) layer.weight = weights(layer);
      if (layer.bias) layer.bias = numbers(layer.bias);
    }
    if (network.mean) [network.mean, network.spread] = [numbers(network.mean), numbers(network.spread)];
    if (network.copies) network.copies = new Int32Array(unpacked(network.copies));
  }

  const operations = {
    linear: (layer, x) => {
      const [outputs, size] = [layer.bias.length, layer.weight.length / layer.bias.length];
      const out = new Float32Array((x.length / size) * outputs);
      for (let row = 0; row * size < x.length; row++) {
        for (let i = 0; i < outputs; i++) {
          let sum = layer.bias[i];
          for (let j = 0, at = i * size, from = row * size; j < size; j++) sum += layer.weight[at + j] * x[from + j];
          out[row * outputs + i] = sum;
        }
      }
      return out;
    },
    sort: (layer, x) =>
      Float32Array.from(layer.orbits.flatMap((orbit) => [...Float32Array.from(orbit, (i) => x[i]).sort()])),
    relu: (layer, x) => x.map((v) => Math.max(0, v)),
    scale: (layer, x) => x.map((v, i) => v * layer.weight[Math.floor(i / layer.size)] + layer.bias[Math.floor(i / layer.size)]),
    transpose: (layer, x) => x.map((_, i) => x[(i % layer.rows) * layer.columns + Math.floor(i / layer.rows)]),
    max: (layer, x) => new Float32Array(x.length / layer.size).map((_, i) => x.subarray(i * layer.size, (i + 1) * layer.size).reduce((a, b) => Math.max(a, b))),
    mean: (layer, x) => new Float32Array(x.length / layer.size).map((_, i) => x.subarray(i * layer.size, (i + 1) * layer.size).reduce((a, b) => a + b) / layer.size),
    "mean and maximum": (layer, x) => {
      const size = x.length / layer.channels;
      return Float32Array.of(...operations.mean({ size }, x), ...operations.max({ size }, x));
    },
    windows: (layer, x) => {
      const [[, h, w], [channels, rows, columns], [high, wide]] = [layer.in, layer.out, layer.size];
      const out = new Float32Array(channels * rows * columns).fill(-Infinity);
      for (let c = 0; c < channels; c++) {
        for (let i = 0; i < h; i++) {
          for (let j = 0; j < w; j++) {
            const at = (c * rows + Math.floor(i / high)) * columns + Math.floor(j / wide);
            if (Math.floor(i / high) < rows && Math.floor(j / wide) < columns) out[at] = Math.max(out[at], x[(c * h + i) * w + j]);
          }
        }
      }
      return out;
    },
    convolution: (layer, x) => {
      const [[channels, h, w], [filters, rows, columns], [high, wide]] = [layer.in, layer.out, layer.kernel];
      const [[down, right], [above, before], [apart, aside]] = [layer.stride, layer.padding, layer.dilation];
      const out = new Float32Array(filters * rows * columns);
      const place = (at, size) => (layer.circular ? (at + size) % size : at);
      for (let f = 0; f < filters; f++) {
        const plane = out.subarray(f * rows * columns, (f + 1) * rows * columns).fill(layer.bias[f]);
        for (let c = 0; c < channels; c++) {
          for (let k = 0; k < high; k++) {
            for (let l = 0; l < wide; l++) {
              const weight = layer.weight[((f * channels + c) * high + k) * wide + l];
              for (let i = 0; i < rows; i++) {
                const row = place(i * down - above + k * apart, h);
                if (row < 0 || row >= h) continue;
                for (let j = 0; j < columns; j++) {
                  const column = place(j * right - before + l * aside, w);
                  if (column >= 0 && column < w) plane[i * columns + j] += weight * x[(c * h + row) * w + column];
                }
              }
            }
          }
        }
      }
      return out;
    },
  };
  const run = (layers, x) => layers.reduce((values, layer) => operations[layer.kind](layer, values), x);
  const softmax = (x) => {
    const top = Math.max(...x);
    const powers = Array.from(x, (v) => Math.exp(v - top));
    const total = powers.reduce((a, b) => a + b, 0);
    return powers.map((v) => v / total);
  };
  const moved = (x, index) => Float32Array.from(index, (i) => (i < x.length ? x[i] : -x[i - x.length]));
  const [high, wide] = data.shape.length > 1 ? data.shape.slice(-2) : [data.shape[0], 1];
  // Bilinear interpolation; places beyond the frame repeat its border, as in the package.
  const warped = (x, [a, b, c, d, down, right]) => {
    if (a === 1 && b === 0 && c === 0 && d === 1 && down === 0 && right === 0) return x;
    const out = new Float32Array(x.length);
    const within = (at, size) => Math.min(size - 1, Math.max(0, at + (size - 1) / 2));
    for (let i = 0; i < high; i++) {
      for (let j = 0; j < wide; j++) {
        const [row, column] = [i - (high - 1) / 2, j - (wide - 1) / 2];
        const [u, v] = [within(a * row + b * column + down, high), within(c * row + d * column + right, wide)];
        const [top, left] = [Math.floor(u), Math.floor(v)];
        const [bottom, far] = [Math.min(top + 1, high - 1), Math.min(left + 1, wide - 1)];
        for (let at = 0; at < x.length; at += high * wide) {
          const value = (r, s) => x[at + r * wide + s];
          const above = value(top, left) * (1 - v + left) + value(top, far) * (v - left);
          const below = value(bottom, left) * (1 - v + left) + value(bottom, far) * (v - left);
          out[at + i * wide + j] = above * (1 - u + top) + below * (u - top);
        }
      }
    }
    return out;
  };
  const mean = (rows) => rows[0].map((_, k) => rows.reduce((sum, row) => sum + row[k], 0) / rows.length);
  const outputs = (network, x) => {
    let values = Float32Array.from(x);
    if (!network.copies) return Array.from(run(network.body, values));
    if (network.mean) values = values.map((v, i) => (v - network.mean[i]) / network.spread[i]);
    const rows = [];
    for (let at = 0; at < network.copies.length; at += values.length) {
      const copy = moved(values, network.copies.subarray(at, at + values.length));
      for (const map of network.maps) rows.push(Array.from(run(network.body, warped(copy, map))));
    }
    let pooled = network.pool === "max" ? rows[0].map((_, k) => Math.max(...rows.map((row) => row[k]))) : null;
    if (network.pool === "mean") pooled = mean(rows);
    if (network.pool === "outputs") pooled = network.probabilities ? mean(rows.map(softmax)).map(Math.log) : mean(rows);
    if (network.head.length) pooled = Array.from(run(network.head, Float32Array.from(pooled)));
    return pooled.map((v, k) => v * network.scale[k % network.scale.length] + network.shift[k % network.shift.length]);
  };
  const predict = (which, x) => {
    const found = outputs(data.networks[which], x);
    if (!data.numbers) return softmax(found);
    const { scale, mean: middle, error } = data.numbers;
    return scale.flatMap((s, k) => [found[k] * s + middle[k], Math.exp(Math.min(3, Math.max(-7, found[scale.length + k]))) * error * s]);
  };

  const dim = data.shape.reduce((a, b) => a * b, 1);
  const pixels = data.drawn === "pixels";
  const [height, width] = pixels ? data.shape.slice(-2) : [448, 448];
  const canvas = document.getElementById("input");
  canvas.width = width;
  canvas.height = height;
  if (!pixels) canvas.style.imageRendering = "auto";
  const pen = canvas.getContext("2d");
  const features = data.low.length;
  const share = (v, feature) => Math.min(1, Math.max(0, (v - data.low[feature]) / (data.high[feature] - data.low[feature])));
  let x = new Float32Array(dim);
  let before = null;
  let still = null;

  const [ground, ...colours] = data.colours;
  const drawn = {
    pixels: () => {
      const picture = pen.createImageData(width, height);
      const coloured = data.shape.length === 3 && data.shape[0] === 3;
      for (let i = 0; i < width * height; i++) {
        const pixel = [0, 1, 2].map((c) => 255 * share(x[coloured ? c * width * height + i : i], 0));
        picture.data.set([...pixel, 255], 4 * i);
      }
      pen.putImageData(picture, 0, 0);
    },
    bars: () => {
      pen.fillStyle = colours[0];
      x.forEach((v, i) => pen.fillRect((i * width) / dim, height * (1 - share(v, 0)), width / dim, height * share(v, 0)));
    },
    curves: () => {
      const steps = dim / features;
      pen.lineWidth = 4;
      for (let feature = 0; feature < features; feature++) {
        pen.strokeStyle = colours[feature % colours.length];
        pen.beginPath();
        for (let i = 0; i < steps; i++) pen.lineTo(4 + ((width - 8) * i) / Math.max(1, steps - 1), 4 + (height - 8) * (1 - share(x[i * features + feature], feature)));
        pen.stroke();
      }
    },
    points: () => {
      pen.fillStyle = colours[0];
      const numbers = data.shape[1];
      for (let i = 0; i < dim; i += numbers) {
        pen.beginPath();
        pen.arc(12 + (width - 24) * share(x[i], 0), 12 + (height - 24) * (1 - share(x[i + 1], 0)), 12, 0, 2 * Math.PI);
        pen.fill();
      }
    },
  };
  const show = () => {
    pen.fillStyle = ground;
    pen.fillRect(0, 0, width, height);
    drawn[data.drawn]();
  };
  const digits = (v) => v.toLocaleString("en-US", {maximumSignificantDigits: 3});
  // Two digits of an error, and a number to the last of them, as in the rest of the page.
  const withError = (mean, error) => {
    const places = error >= 1e-4 && error < 10 ? 1 - Math.floor(Math.log10(error)) : 0;
    const fixed = (v) => v.toLocaleString("en-US", {minimumFractionDigits: places, maximumFractionDigits: places});
    return places ? `${fixed(mean)} ± ${fixed(error)}` : `${digits(mean)} ± ${digits(error)}`;
  };
  const bars = (which, p) => {
    if (data.numbers) {
      const said = data.numbers.scale.map((_, k) => withError(p[2 * k], p[2 * k + 1]));
      document.getElementById(`best-${which}`).textContent = said.join(", ");
      return;
    }
    document.querySelectorAll(`[data-network="${which}"] .row`).forEach((row, k) => {
      row.querySelector(".fill").style.width = `${100 * p[k]}%`;
      row.lastElementChild.textContent = p[k].toFixed(3);
    });
    const best = p.indexOf(Math.max(...p));
    document.getElementById(`best-${which}`).textContent = `${data.classes[best]} (${p[best].toFixed(3)})`;
  };
  const update = (hasMoved) => {
    show();
    const now = {};
    for (const which of Object.keys(data.networks)) {
      now[which] = predict(which, x);
      bars(which, now[which]);
      const change = hasMoved && before ? Math.max(...now[which].map((v, k) => Math.abs(v - before[which][k]))) : 0;
      document.getElementById(`change-${which}`).textContent = hasMoved
        ? `the last move changed a ${data.numbers ? "number" : "probability"} by at most ${data.numbers ? digits(change) : change.toFixed(4)}`
        : "";
    }
    before = now;
  };

  const slides = [...document.querySelectorAll("input[data-slider]")];
  const say = (slide) => (document.getElementById(`slid-${slide.dataset.slider}`).textContent = data.sliders[slide.dataset.slider].labels[slide.value]);
  // Sliders move the input as it was before any of them was touched; every other change starts anew.
  const settle = () => {
    still = null;
    for (const slide of slides) {
      slide.value = (slide.max - slide.min) / 2;
      say(slide);
    }
  };
  slides.forEach((slide) =>
    slide.addEventListener("input", () => {
      still = still || x;
      x = slides.reduce((values, each) => warped(values, data.sliders[each.dataset.slider].maps[each.value]), still);
      say(slide);
      update(true);
    }),
  );
  const pick = document.getElementById("pick");
  pick.addEventListener("change", () => {
    x = Float32Array.from(inputs[Number(pick.value)]);
    settle();
    update(false);
  });
  document.querySelectorAll("button[data-move]").forEach((button) => {
    button.addEventListener("click", () => {
      x = moved(x, moves[Number(button.dataset.move)]);
      settle();
      update(true);
    });
  });
  const clear = document.getElementById("clear");
  if (clear) {
    clear.addEventListener("click", () => {
      x = new Float32Array(dim).fill(data.low[0]);
      settle();
      update(false);
    });
    const paint = (event) => {
      if (event.type === "pointermove" && event.buttons === 0) return;
      if (still) settle();
      const box = canvas.getBoundingClientRect();
      const [u, v] = [((event.clientX - box.left) / box.width) * width, ((event.clientY - box.top) / box.height) * height];
      const reach = Math.max(0.8, Math.min(width, height) / 20);
      for (let row = 0; row < height; row++) {
        for (let column = 0; column < width; column++) {
          const far = Math.hypot(column + 0.5 - u, row + 0.5 - v);
          const ink = data.low[0] + (data.high[0] - data.low[0]) * Math.min(1, Math.max(0, 1.5 - far / reach));
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
