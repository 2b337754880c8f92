package lab

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
)

// message is a packet with its body.
func message(call Call, kind, serial uint32, body []byte) []byte {
	var m []byte
	for _, word := range []uint32{uint32(headerSize + len(body)), remoteProgram, 1, uint32(call), kind, serial, 0} {
		m = binary.BigEndian.AppendUint32(m, word)
	}
	return append(m, body...)
}

// tapBetween creates a tap between a client and a server.
func tapBetween(t *testing.T) (tap *Tap, client, server net.Conn) {
	t.Helper()
	dir, err := os.MkdirTemp("", "tap")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	h := &Host{socket: filepath.Join(dir, "server")}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", h.socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	if tap, err = NewTap(t.Context(), h, dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tap.Close() })
	if client, err = (&net.Dialer{}).DialContext(t.Context(), "unix", filepath.Join(dir, "tap")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	if server, err = listener.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	return tap, client, server
}

// tapBefore creates a tap in front of a server that sends the received data to got when the connection has ended. conn is the client's.
func tapBefore(t *testing.T) (tap *Tap, conn net.Conn, got <-chan []byte) {
	t.Helper()
	tap, conn, server := tapBetween(t)
	all := make(chan []byte, 1)
	go func() {
		content, _ := io.ReadAll(server) // until the tap closes it
		all <- content
	}()
	return tap, conn, all
}

// send sends packets as far as the connection lasts, and closes it.
func send(t *testing.T, conn net.Conn, messages ...[]byte) {
	t.Helper()
	for _, m := range messages {
		if _, err := conn.Write(m); err != nil {
			break
		}
	}
	_ = conn.Close()
}

func TestTap_LargestPacketsAndHoles(t *testing.T) {
	tap, conn, got := tapBefore(t)
	messages := [][]byte{
		message(CallVolumeUpload, typeCall, 5, []byte("which volume")),
		message(CallVolumeUpload, typeStream, 5, bytes.Repeat([]byte("0123456"), 33_554_408/7)),
		message(CallVolumeUpload, typeHole, 5, make([]byte, 12)),
		message(CallVolumeDownload, typeStream, 6, nil),
		message(CallVolumeUpload, typeStream, 5, nil),
	}
	send(t, conn, messages...)
	if all := bytes.Join(messages, nil); !bytes.Equal(<-got, all) {
		t.Error("other bytes came than were sent")
	}
	if got := tap.Calls(CallVolumeUpload); got != 1 {
		t.Errorf("it counts %d uploads, want 1", got)
	}
	if got, want := tap.Uploaded(), int64(len(messages[1])+40+28); got != want {
		t.Errorf("it counts %d bytes of uploads, want %d", got, want)
	}
}

func TestTap_FailsUploadMidway(t *testing.T) {
	data := make([]byte, 1000)
	messages := [][]byte{
		message(CallVolumeUpload, typeCall, 5, nil), // the first upload, which must pass
		message(CallVolumeUpload, typeStream, 5, data),
		message(CallVolumeUpload, typeStream, 5, data),
		message(CallVolumeUpload, typeCall, 6, nil),
		message(CallVolumeUpload, typeStream, 5, data),
		message(CallVolumeUpload, typeHole, 6, make([]byte, 12)),
		message(CallVolumeUpload, typeStream, 6, data),
		message(CallVolumeUpload, typeHole, 6, make([]byte, 12)),
		message(CallVolumeUpload, typeStream, 6, data),
		message(CallVolumeUpload, typeStream, 6, nil),
	}
	for at, want := range map[int64]int{1: 7, 1000: 7, 1001: 9, 2000: 9, 2001: 10} {
		tap, conn, got := tapBefore(t)
		tap.Arm(Fault{Call: CallVolumeUpload, Nth: 2, AtByte: at})
		send(t, conn, messages...)
		if passed := <-got; !bytes.Equal(passed, bytes.Join(messages[:want], nil)) {
			t.Errorf("at byte %d: %d bytes pass, want the first %d packets", at, len(passed), want)
		}
		if fired := want < len(messages); tap.Fired() != fired {
			t.Errorf("at byte %d: fired is %t", at, tap.Fired())
		}
		if got := tap.Calls(CallVolumeUpload); got != 2 {
			t.Errorf("at byte %d: it counts %d uploads, want 2", at, got)
		}
	}
}

func TestTap_HeldCallIsNotCounted(t *testing.T) {
	tap, conn, got := tapBefore(t)
	tap.Arm(Fault{Call: CallVolumeUpload, Nth: 1})
	send(t, conn, message(CallVolumeUpload, typeCall, 5, nil))
	if passed := <-got; len(passed) > 0 || !tap.Fired() || tap.Calls(CallVolumeUpload) != 0 {
		t.Errorf("%d bytes pass, fired is %t, it counts %d", len(passed), tap.Fired(), tap.Calls(CallVolumeUpload))
	}
}

// passes sends messages from one end and fails the test unless they arrive at the other one in the order of want.
func passes(t *testing.T, from, to net.Conn, messages [][]byte, want ...[]byte) {
	t.Helper()
	for _, m := range messages {
		if _, err := from.Write(m); err != nil {
			t.Fatal(err)
		}
	}
	for n, m := range want {
		got := make([]byte, len(m))
		if _, err := io.ReadFull(to, got); err != nil || !bytes.Equal(got, m) {
			t.Fatalf("%d: %q arrives, want %q: %v", n, got, m, err)
		}
	}
}

func TestTap_HoldsCallUntilReleased(t *testing.T) {
	tap, client, server := tapBetween(t)
	held, other := message(CallDefine, typeCall, 5, []byte("held")), message(CallAttach, typeCall, 6, []byte("other"))
	tap.Arm(Fault{Call: CallDefine, Nth: 1, Hold: true})
	passes(t, client, server, [][]byte{held, other}, other)
	if !tap.Fired() || tap.Calls(CallDefine) != 0 {
		t.Errorf("fired is %t, it counts %d", tap.Fired(), tap.Calls(CallDefine))
	}
	tap.Release()
	passes(t, client, server, nil, held)
	passes(t, client, server, [][]byte{held}, held)
	if got := tap.Calls(CallDefine); got != 2 {
		t.Errorf("it counts %d calls, want 2", got)
	}
}

func TestTap_HoldsReplyUntilReleased(t *testing.T) {
	tap, client, server := tapBetween(t)
	call := message(CallDefine, typeCall, 5, nil)
	held, other := message(CallDefine, typeReply, 5, []byte("held")), message(CallDefine, typeReply, 4, []byte("other"))
	tap.Arm(Fault{Call: CallDefine, Nth: 1, After: true, Hold: true})
	passes(t, client, server, [][]byte{call}, call)
	if tap.Fired() {
		t.Error("it fires before the reply")
	}
	passes(t, server, client, [][]byte{held, other}, other)
	if !tap.Fired() {
		t.Error("it does not fire at the reply")
	}
	tap.Release()
	passes(t, server, client, nil, held)
}

func TestTap_SlowsCopyDown(t *testing.T) {
	tap, client, server := tapBetween(t)
	pull := func(bandwidth byte) []byte {
		return message(CallBlockPull, typeCall, 5, []byte{'v', 'd', 'a', 0, 0, 0, 0, 0, 0, 0, 0, bandwidth, 0, 0, 0, 0})
	}
	tap.Arm(Fault{Call: CallBlockPull, Nth: 1, Slow: true})
	passes(t, client, server, [][]byte{pull(0)}, pull(1))
}

func TestFault_Name(t *testing.T) {
	for want, fault := range map[string]Fault{
		"cut-before-define-1":          {Call: CallDefine, Nth: 1},
		"kill-after-create-xml-2":      {Call: CallCreateXML, Nth: 2, After: true, Kill: true},
		"refuse-attach-1":              {Call: CallAttach, Nth: 1, Refuse: true},
		"hold-before-block-pull-1":     {Call: CallBlockPull, Nth: 1, Hold: true},
		"hold-before-migrate-finish-1": {Call: CallMigrateFinish, Nth: 1, Hold: true},
		"slow-before-block-pull-1":     {Call: CallBlockPull, Nth: 1, Slow: true},
		"cut-at-1048576-vol-upload-1":  {Call: CallVolumeUpload, Nth: 1, AtByte: 1 << 20},
	} {
		if got := fault.String(); got != want {
			t.Errorf("%+v is named %q, want %q", fault, got, want)
		}
	}
}
