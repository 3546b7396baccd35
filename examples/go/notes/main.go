// Command notes keeps a note in a kernel's memory, as the process notes.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "notes:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	kernel, err := client.Dial(ctx, client.Options{})
	if err != nil {
		return err
	}
	defer kernel.Close()
	may := &schema.SpawnCapability{AllowedSyscalls: []string{"Memory.*"}}
	if _, err := client.Call(ctx, kernel, schema.ProcessAttach, &schema.AttachInput{AgentID: "notes", Capabilities: may}); err != nil {
		return err
	}
	note := &schema.MemorySetInput{Key: "notes/1", Value: schema.Value(`"hello"`)}
	if _, err := client.Call(ctx, kernel, schema.MemorySet, note); err != nil {
		return err
	}
	_, err = client.Call(ctx, kernel, schema.MemoryGet, &schema.MemoryGetInput{Key: "notes/2"})
	if refused := client.Answered(err); errors.Is(err, fault.MemoryNotFound) {
		fmt.Println(refused.ID, refused.Code(), refused.Text())
		return nil
	}
	return err
}
