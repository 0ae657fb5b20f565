/* Browsers start no Worker for a page that was opened as a file, and the site's search asks for one. There the search
   runs in a hidden frame, which has the same ways to listen and to answer. */
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      this.waiting = [];
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.frame.addEventListener("load", () => this.load(address), { once: true });
      document.body.append(this.frame);
    }

    load(address) {
      const inside = this.frame.contentWindow, script = inside.document.createElement("script");
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      script.addEventListener("load", () => {
        this.postMessage = (data) => inside.dispatchEvent(new inside.MessageEvent("message", { data }));
        this.waiting.forEach((data) => this.postMessage(data));
      });
      script.src = new URL(address, document.baseURI);
      inside.document.head.append(script);
    }

    postMessage(data) {
      this.waiting.push(data);
    }

    terminate() {
      this.frame.remove();
    }
  };
}
