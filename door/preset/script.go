package preset

// put is JavaScript for hosts whose hook is a module: put(words, question) runs the hook, and returns why it denies. It waits shorter than
// what people would take for a hang, and longer than the hook itself.
const put = `import { spawn } from "node:child_process"

const ask = {{ask}}
const tell = {{tell}}

function put(words, question) {
  return new Promise((resolve) => {
    let said = ""
    const child = spawn(words[0], words.slice(1), { stdio: ["pipe", "ignore", "pipe"] })
    const late = setTimeout(() => {
      child.kill("SIGKILL")
      resolve("pwos: the kernel gave no answer in time, so the tool is denied")
    }, {{late}})
    const end = (why) => {
      clearTimeout(late)
      resolve(why)
    }
    child.on("error", (e) => end("pwos: the hook cannot be started, so the tool is denied: " + e.message))
    child.on("close", (status) => end(status === 0 ? undefined : said.trim() || "pwos: the tool was not allowed"))
    child.stderr.on("data", (text) => (said += text))
    child.stdin.on("error", () => {}) // it has ended, and its status says how
    child.stdin.end(JSON.stringify(question))
  })
}
`
