package virtualmachine

import (
	"context"
	"fmt"
	"reflect"
	"strings"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
)

// processorHost is what a host is asked about the processor of a guest.
type processorHost interface {
	LiveXML(ctx context.Context, id string) (string, error)
	MissingFeatures(ctx context.Context, of host.Hardware, cpu string) (missing string, err error)
	Processor(ctx context.Context) (host.Processor, error)
}

// lacking is what the processor of the target lacks for a guest that is to go on there; empty if it lacks nothing.
func lacking(ctx context.Context, from, to processorHost, target, id string) (why string, err error) {
	text, err := from.LiveXML(ctx, id)
	if err != nil {
		return "", err
	}
	live, err := domainxml.Read(text)
	if err != nil {
		return "", err
	}
	is, err := live.Machine()
	if err != nil {
		return "", err
	}
	cpu, mode, err := live.Processor()
	switch {
	case err != nil || cpu == "":
		return "", err
	case mode == "host-passthrough" || mode == "maximum":
		return unlike(ctx, from, to, target, mode)
	}
	missing, err := to.MissingFeatures(ctx, host.Hardware{Arch: is.Arch, Type: is.Type, DomainType: is.DomainType}, cpu)
	if missing == "" || err != nil {
		return "", err
	}
	return fmt.Sprintf("its guest uses features of the processor that host %s lacks: %s. %s", target, firstOf(missing), otherCPU), nil
}

// unlike refuses a guest that has all of its host's processor, unless the target's is the same: libvirt lists no features for it, and would
// accept it anywhere.
func unlike(ctx context.Context, from, to processorHost, target, mode string) (why string, err error) {
	was, err := from.Processor(ctx)
	if err != nil {
		return "", err
	}
	is, err := to.Processor(ctx)
	if err != nil || reflect.DeepEqual(was, is) {
		return "", err
	}
	return fmt.Sprintf("its guest has all of its host's processor (%s), and host %s has another one. %s", mode, target, otherCPU), nil
}

// otherCPU is what helps.
const otherCPU = "Start it with a cpu.model of both hosts, or use mode = \"offline\""

// firstOf shortens a long list.
func firstOf(list string) string {
	const most = 3
	all := strings.Split(list, ", ")
	if len(all) <= most {
		return list
	}
	return fmt.Sprintf("%s and %d more", strings.Join(all[:most], ", "), len(all)-most)
}
