// Connects to the socket PATH with a TIMEOUT in milliseconds and makes CALLS calls; further words change what is done. Prints the outcome of each.
import { Kernel, KernelError } from "./pwos.ts";

const [path = "", timeout, calls] = process.argv.slice(2);

async function attempt<T>(what: Promise<T>): Promise<T | undefined> {
  try {
    return await what;
  } catch (error) {
    if (!(error instanceof KernelError)) throw error;
    console.log(`${error.id} ${error.code} ${error.fix ? "with" : "without"} a fix`);
    return undefined;
  }
}

process.emitWarning = () => console.log("warned");
const kernel = await attempt(Kernel.connect({ path, timeout: Number(timeout), check: process.argv.includes("check") }));
if (kernel) {
  const wait_ms = process.argv.includes("wait") ? 60000 : 0;
  for (let n = 0; n < Number(calls); n++) {
    const own = n === 0 && process.argv.includes("hurry") ? { timeout: 50 } : {};
    const answer = await attempt(kernel.call("query", "Syscall.Ping", { payload: n, wait_ms }, own));
    if (answer) console.log(answer.payload);
  }
  if (process.argv.includes("events")) {
    await attempt((async () => {
      for await (const event of kernel.events()) console.log(event.type, event.data);
    })());
  }
  kernel.close();
}
