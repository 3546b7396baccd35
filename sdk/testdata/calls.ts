// Calls of memory, mail and processes: what comes back, and what goes wrong.
import { Kernel, KernelError } from "./pwos.ts";

const show = (value: unknown) => console.log(JSON.stringify(value));

async function refused(call: () => Promise<unknown>): Promise<void> {
  try {
    await call();
    console.log("not refused");
  } catch (error) {
    if (!(error instanceof KernelError)) throw error;
    console.log(`${error.id} ${error.code} ${error.message ? "True" : "False"} ${error.fix}`);
  }
}

const kernel = await Kernel.connect();

// What is written comes back.
const strange = 'quotes " \\ \n \0 \u2028 \u202e \u{1f600}';
for (const value of [null, true, 2 ** 53 - 1, 1.5, "", { a: [1, {}] }, strange, JSON.parse('{"__proto__":1,"constructor":2}')]) {
  await kernel.memorySet({ key: "notes/\u00fc \u05d0", value });
  show(JSON.stringify(await kernel.memoryGet({ key: "notes/\u00fc \u05d0" })) === JSON.stringify(value));
}
show((await kernel.memoryList({ prefix: "notes/" })).keys.join() === "/notes/\u00fc \u05d0");

// An answer that does not fit a line is read from its file; what does not fit one is refused, and the next call is made.
const long = "\u00e9".repeat(8090);
await kernel.memorySet({ key: "long", value: long });
show((await kernel.memoryGet({ key: "long" })) === long);
for (const payload of [long, { in: long, pieces: [1, "\r\n"] }]) {
  show(JSON.stringify(await kernel.syscallPing({ payload })) === JSON.stringify({ payload }));
}
await refused(() => kernel.memorySet({ key: "long", value: "x".repeat(20000) }));
show((await kernel.syscallPing({ payload: 7 })).payload);

// Errors.
await refused(() => kernel.memoryGet({ key: "nothing" }));
await refused(() => kernel.memorySet({ key: "../up", value: 1 }));
await refused(() => kernel.call("command", "Moon.Rise"));
await refused(() => kernel.call("command", "Memory.Get", { key: "a" }));

// Processes and mail.
const pid = (await kernel.syscallSpawn({ child_agent_id: "bob", capabilities: { allowed_syscalls: ["Ipc.*"] } })).child_pid;
show((await kernel.processList()).processes.map((p) => p.agent_id));
const letter = { receiver_pid: pid, payload: { to: "bob" } };
const sent = await kernel.syscallSendMsg(letter, { idempotencyKey: "k", correlation: "c" });
const again = await kernel.syscallSendMsg(letter, { idempotencyKey: "k", correlation: "c" });
show(sent.msg_id === again.msg_id);
await refused(() => kernel.syscallSendMsg({ receiver_pid: pid, payload: "other" }, { idempotencyKey: "k" }));
const { messages } = await kernel.ipcReceive({ pid, wait_ms: 60000 }, { timeout: 60000 });
show(messages.map((m) => [m.payload, m.correlation]));

// Many at once.
const answers = await Promise.all(Array.from({ length: 200 }, (_, n) => kernel.syscallPing({ payload: n })));
show(answers.every(({ payload }, n) => payload === n));
const calls = await Promise.all(Array.from({ length: 20 }, (_, n) => kernel.call("query", "Syscall.Ping", { payload: n })));
show(calls.every(({ payload }, n) => payload === n));

// What JSON cannot say is never sent.
const round: any = {};
round.round = round;
for (const payload of [1n, round]) await kernel.syscallPing({ payload }).catch(() => show(true));
await refused(() => kernel.syscallPing({ payload: "\ud800" }));
show((await kernel.syscallPing({ payload: true })).payload);

kernel.close();
await refused(() => kernel.syscallPing({ payload: 1 }));
kernel.close();
