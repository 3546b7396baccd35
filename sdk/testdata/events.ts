// What the kernel pushes, and a syscall of our own, whose name is the argument.
import { Kernel, KernelError } from "./pwos.ts";

const [name = ""] = process.argv.slice(2);

const provider = await Kernel.connect();
const kernel = await Kernel.connect();

function serve(data: string, pid: number): unknown {
  if (data === "raise") throw new Error("no such thing: \u00fc " + "x".repeat(1000));
  if (data === "long") return "x".repeat(20000);
  if (data === "no json") return 1n;
  if (data === "call") return provider.syscallPing({ payload: "inside" }).then(({ payload }) => payload); // a handler may call
  if (data === "number") return 1;
  return [data, pid];
}

const pid = (await kernel.syscallSpawn({ child_agent_id: "bob", capabilities: { allowed_syscalls: ["Ipc.*"] } })).child_pid;
await provider.ipcSubscribe({ pid });
const done = new Promise<void>((resolve) => {
  provider.on("Ipc.MessageDelivered", ({ type, data }) => {
    console.log(type, data.payload);
    if (data.payload === "last") resolve();
  });
});
await provider.provide({ name, input: { type: "string" }, output: { type: ["array", "string"] }, description: "Says it again." }, serve);
const loop = provider.run();
for (const payload of ["first", "\u00fc", "last"]) await kernel.syscallSendMsg({ receiver_pid: pid, payload });
await done;

async function attempt(from: Kernel, data: string | number): Promise<void> {
  try {
    console.log(JSON.stringify(await from.call("command", name, data)));
  } catch (error) {
    if (!(error instanceof KernelError)) throw error;
    console.log(error.id);
  }
}
for (const data of ["hello", "raise", "long", "no json", "number", 7, "call"]) await attempt(kernel, data);
await attempt(provider, "x");
console.log((await kernel.syscallDescribe({ name })).description);
provider.close();
await loop;
console.log("the loop has ended");
await attempt(kernel, "x");
kernel.close();
