// Search from disk: pages opened as files may not start a Worker, so the script of the search runs in a hidden frame.
(function () {
  "use strict";
  if (location.protocol !== "file:") return;
  class FrameWorker extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      frame.title = "search";
      this.inside = new Promise((ready) => {
        frame.onload = () => {
          frame.onload = null;
          const script = frame.contentDocument.createElement("script");
          frame.contentWindow.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
          script.src = url;
          script.onload = () => ready(frame.contentWindow);
          frame.contentDocument.body.append(script);
        };
      });
      document.body.append(frame);
    }
    postMessage(data) {
      this.inside.then((window) => window.dispatchEvent(new MessageEvent("message", { data })));
    }
  }
  window.Worker = window.IFrameWorker = FrameWorker;
})();
