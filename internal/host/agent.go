package host

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/digitalocean/go-libvirt"
)

// AskAgent has the guest agent of a running domain execute a command, and reads what it returns into answer.
func (h *Host) AskAgent(ctx context.Context, id, command string, arguments map[string]any, answer any) error {
	question := map[string]any{"execute": command}
	if len(arguments) > 0 {
		question["arguments"] = arguments
	}
	text, err := json.Marshal(question)
	if err != nil {
		return err
	}
	op := "ask the guest agent for " + command + " in domain"
	said, err := onDomain(ctx, h, op, id, func(l *libvirt.Libvirt, d libvirt.Domain) (libvirt.OptString, error) {
		return l.QEMUDomainAgentCommand(d, string(text), int32(agentTime/time.Second), 0)
	})
	if err != nil {
		return err
	}
	if err := json.Unmarshal([]byte(strings.Join(said, "")), &struct {
		Return any `json:"return"`
	}{answer}); err != nil {
		return h.failed(op+" "+id, fmt.Errorf("its answer is none: %w", err))
	}
	return nil
}

// Answer is the error of a call to a guest agent, without the host and the operation: its end tells what there was.
func Answer(err error) string {
	if err == nil {
		return "none"
	}
	var e *Error
	if errors.As(err, &e) {
		err = e.Err
	}
	text := err.Error()
	return Quoted(text[max(0, len(text)-80):])
}

// Quoted is a text that a guest may have written, cut to what an error has room for.
func Quoted(text string) string {
	const most = 100
	end := min(len(text), most)
	for len(strconv.Quote(text[:end])) > most+2 {
		end--
	}
	return strconv.Quote(text[:end])
}

// PutOnline waits up to onlineTime until the guest agent of a running domain has put that many processors online: the guest's kernel takes
// a moment to see those that were plugged in.
func (h *Host) PutOnline(ctx context.Context, id string, vcpus uint) (err error) {
	waitCtx, cancel := context.WithTimeout(ctx, onlineTime)
	defer cancel()
	failed := h.AwaitEvery(waitCtx, time.Second, id, func(context.Context) (bool, error) {
		tryCtx, cancel := context.WithTimeout(ctx, agentTime)
		defer cancel()
		err = domainDo(tryCtx, h, "put processors online in domain", id, func(l *libvirt.Libvirt, d libvirt.Domain) error {
			return l.DomainSetVcpusFlags(d, uint32(vcpus), uint32(libvirt.DomainVCPULive|libvirt.DomainVCPUGuest))
		})
		return err == nil || isCode(err, libvirt.ErrAgentUnresponsive) || tryCtx.Err() != nil, nil
	})
	return cmp.Or(err, failed)
}
