// Calls the method of each syscall, named in the arguments as METHOD=TYPE, with a member that no syscall has.
import { Kernel, KernelError } from "./pwos.ts";

const kernel = await Kernel.connect();
for (const argument of process.argv.slice(2)) {
  const [name, type] = argument.split("=") as [string, string];
  try {
    await (kernel as any)[name]({ "\u2603": 1 });
  } catch (error) {
    if (!(error instanceof KernelError) || error.id !== "wire.invalid_input") throw new Error(`${type}: ${error}`);
    console.log(type);
  }
}
kernel.close();
