// Browsers start no workers for pages that are opened as files. The search needs one, so here a hidden frame stands for it.
"use strict";
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.appendChild(frame);
      this.inside = frame.contentWindow;
      this.loaded = new Promise((resolve) => frame.addEventListener("load", resolve, { once: true }));
      window.addEventListener("message", (event) => {
        if (event.source !== this.inside) return;
        const message = new MessageEvent("message", { data: event.data });
        this.dispatchEvent(message);
        if (this.onmessage) this.onmessage(message);
      });
      const page = this.inside.document;
      page.open();
      page.write(`<!DOCTYPE html><html><head></head><body><script>
        postMessage = (data) => parent.dispatchEvent(new MessageEvent("message", { data, source: window }));
        importScripts = (...urls) => urls.reduce((before, url) => before.then(() => new Promise((resolve) => {
          const script = document.createElement("script");
          script.src = url;
          script.addEventListener("load", resolve);
          document.body.appendChild(script);
        })), Promise.resolve());
      </` + `script><script src="${url}"></` + `script></body></html>`);
      page.close();
    }
    postMessage(data) {
      this.loaded.then(() => this.inside.dispatchEvent(new MessageEvent("message", { data })));
    }
    terminate() {}
  };
}
