// Calls registered syscalls, as many as the argument says, that have hostile text in their descriptions and schemas.
import { Kernel, KernelError } from "./pwos.ts";

const kernel = await Kernel.connect();
for (let n = 0; n < Number(process.argv[2]); n++) {
  try {
    await (kernel as any)[`evilN${n}`]({ class: "x", words: "None" });
  } catch (error) {
    if (!(error instanceof KernelError)) throw error;
    console.log(error.id);
  }
}
kernel.close();
