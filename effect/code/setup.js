(() => {
  const { pwosLog: log, pwosEnd: end } = globalThis;
  delete globalThis.pwosLog;
  delete globalThis.pwosEnd;
  const done = 0, badCode = 1, threw = 2, unusable = 3, overMemory = 4, overOutput = 5;
  const { stringify, parse } = JSON;
  const text = (v) => {
    try {
      if (typeof v === "string") return v;
      if (v instanceof Error) return `${v.name}: ${v.message}`;
      return stringify(v) ?? String(v);
    } catch {
      return "what cannot be shown";
    }
  };
  const write = (...values) => {
    log(values.map(text).join(" ").slice(0, 4096));
  };
  globalThis.console = { log: write, info: write, warn: write, error: write, debug: write };
  const fail = (e) => {
    const said = text(e).slice(0, 1024);
    const over = e instanceof InternalError && /out of memory|stack overflow/.test(e.message);
    end(over ? overMemory : threw, said);
  };
  const hidden = (name, value) => Object.defineProperty(globalThis, name, { value });
  hidden("pwosCheck", () => {
    const exports = pwosModule ?? {};
    if (typeof exports.handler === "function") return end(done, "");
    const instead = "default" in exports ? "a default, and no handler" : "no handler";
    end(badCode, `it exports ${instead}: write export function handler(input) { … }`);
  });
  hidden("pwosCall", (input, most) => {
    const finish = (value) => {
      let output;
      try {
        output = stringify(value);
      } catch (e) {
        if (e instanceof InternalError) return fail(e);
        return end(unusable, text(e).slice(0, 1024));
      }
      if (output === undefined) return end(unusable, `${typeof value}`);
      if (output.length > most) return end(overOutput, "");
      end(done, output);
    };
    (async () => {
      let value;
      try {
        value = await pwosModule.handler(parse(input));
      } catch (e) {
        return fail(e);
      }
      finish(value);
    })();
  });
})();
