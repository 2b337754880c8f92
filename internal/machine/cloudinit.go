package machine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// cloudInitResult is the file that cloud-init writes when all its stages are through. It is on a file system in memory: one of an earlier
// boot is not there.
const cloudInitResult = "/run/cloud-init/result.json"

// largestResult limits what a guest may have us read.
const largestResult = 64 << 10

// CloudInit is what is known of a guest's cloud-init. While it is not over, Why is the last answer.
type CloudInit struct {
	// Ended is true if it has ended, with these errors.
	Ended  bool
	Errors []string
	// Refused is true if the agent does not tell.
	Refused bool
	Why     error

	asked bool
}

// IsOver reports whether there is nothing to wait for.
func (c *CloudInit) IsOver() bool { return c.Ended || c.Refused }

// LookAtCloudInit asks the connected agent of a running machine whether cloud-init is through.
func (m Manager) LookAtCloudInit(ctx context.Context, uuid string, c *CloudInit) {
	if !c.asked {
		if c.Refused, c.Why = m.refusesFiles(ctx, uuid); c.Why != nil {
			return
		}
		c.asked = true
	}
	var handle int
	c.Why = m.host.AskAgent(ctx, uuid, "guest-file-open", map[string]any{"path": cloudInitResult, "mode": "r"}, &handle)
	if c.Why != nil {
		return // libvirt has one code for a file that is not there yet and all other errors
	}
	var read struct {
		Content []byte `json:"buf-b64"`
	}
	c.Why = m.host.AskAgent(ctx, uuid, "guest-file-read", map[string]any{"handle": handle, "count": largestResult}, &read)
	_ = m.host.AskAgent(ctx, uuid, "guest-file-close", map[string]any{"handle": handle}, nil)
	if c.Why != nil {
		return
	}
	var result struct {
		V1 *struct {
			Errors []string `json:"errors"`
		} `json:"v1"`
	}
	if c.Why = json.Unmarshal(read.Content, &result); c.Why == nil && result.V1 == nil {
		c.Why = fmt.Errorf("%s has no v1", cloudInitResult)
	}
	if c.Why == nil {
		c.Ended, c.Errors = true, result.V1.Errors
	}
}

// refusesFiles reports whether the agent has no commands to read files: distributions leave them out, as they serve for more.
func (m Manager) refusesFiles(ctx context.Context, uuid string) (refused bool, err error) {
	var info struct {
		Commands []struct {
			Name    string `json:"name"`
			Enabled bool   `json:"enabled"`
		} `json:"supported_commands"`
	}
	if err := m.host.AskAgent(ctx, uuid, "guest-info", nil, &info); err != nil {
		return false, err
	}
	missing := []string{"guest-file-open", "guest-file-read", "guest-file-close"}
	for _, c := range info.Commands {
		missing = slices.DeleteFunc(missing, func(name string) bool { return name == c.Name && c.Enabled })
	}
	if len(missing) > 0 {
		return true, errors.New("it does not allow " + strings.Join(missing, ", "))
	}
	return false, nil
}
