//go:build linux && !pwos_powercut

package lead

import "os"

// bootID returns the id of this start of the machine; "" if it is not known.
func bootID() string {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return string(text)
}
