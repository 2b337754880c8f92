package lab

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
)

// network is for servers whose clients support only the standard port. It has its own address, which only this machine reaches: so several
// labs and the machine itself can have such servers at once. It is removed with the sandbox.
type network struct {
	// Address is the address of the servers.
	Address string

	sandbox *sandbox
	// file names the network for programs of the sandbox, and run is the folder that these have over /run.
	file, run string
}

// networks and nodeNetworks begin the ranges of the addresses, 65,536 each. They are reserved for tests of networks (RFC 2544), so that no
// other machine uses them.
var networks, nodeNetworks = netip.MustParseAddr("198.18.0.0"), netip.MustParseAddr("198.19.0.0")

// newNetwork creates a network in a sandbox whose files are in home.
func newNetwork(ctx context.Context, s *sandbox, home string) (*network, error) {
	n := &network{sandbox: s, file: filepath.Join(home, "network"), run: filepath.Join(home, "run")}
	if err := os.Mkdir(n.run, 0o700); err != nil {
		return nil, err
	}
	file := quote(n.file)
	if err := s.run(ctx, "touch "+file+" && unshare --net="+file+" ip link set lo up"); err != nil {
		return nil, fmt.Errorf("make a network: %w", err)
	}
	link, number, err := addLink(ctx, s, n.file, "vclab", 14)
	if err != nil {
		return nil, err
	}
	return n, n.connect(ctx, link, number)
}

// addLink connects the machine with the network of a file, where the link's end is eth0. Its number has that many bits, and no other link
// with the prefix has it at the same time.
func addLink(ctx context.Context, s *sandbox, file, prefix string, bits int) (link string, number uint16, err error) {
	for range 10 {
		var random [2]byte
		_, _ = rand.Read(random[:]) // it never fails
		number = binary.BigEndian.Uint16(random[:]) >> (16 - bits)
		// The kernel refuses a name that another lab's network has: then this number is in use.
		link = fmt.Sprintf("%s%d", prefix, number)
		if err = s.run(ctx, fmt.Sprintf("ip link add %s type veth peer name eth0 netns %s", link, quote(file))); err == nil {
			return link, number, nil
		}
	}
	return "", 0, fmt.Errorf("connect a network: %w", err)
}

// connect assigns the addresses to both ends of a link. Each number has four: those of the network, of the machine and of the servers, and
// the broadcast.
func (n *network) connect(ctx context.Context, link string, number uint16) error {
	first := 4 * uint32(number)
	machine, servers := address(networks, first+1), address(networks, first+2)
	n.Address = servers.String()
	for _, command := range []string{
		fmt.Sprintf("ip address add %s/30 dev %s", machine, link),
		"ip link set " + link + " up",
		n.in(fmt.Sprintf("ip address add %s/30 dev eth0", servers)),
		n.in("ip link set eth0 up"),
	} {
		if err := n.sandbox.run(ctx, command); err != nil {
			return fmt.Errorf("connect a network: %w", err)
		}
	}
	return nil
}

// address is the address at a distance from the begin of a range.
func address(from netip.Addr, distance uint32) netip.Addr {
	base := from.As4()
	return netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, binary.BigEndian.Uint32(base[:])+distance)))
}

// enter is a shell command that runs in the network.
func (n *network) enter(command string) string {
	return "nsenter --net=" + quote(n.file) + " " + command
}

// in is a shell command that runs in the network, with its own folder over /run, because servers and their tools support only the standard
// place. The sandbox itself needs the machine's /run.
func (n *network) in(command string) string {
	text := "mount --bind " + quote(n.run) + " /run && exec " + command
	return n.enter("unshare --mount bash -c " + quote(text))
}
