package iscsi

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
)

func TestTarget_TooManySessions(t *testing.T) {
	target, _ := newTarget(t)
	target.MaxSessions = 2
	address := serve(t, target)
	var last *initiator
	for n := range 3 {
		last = dial(t, address)
		last.isid, last.stage = byte(n), stageOperational
		if _, status := last.login(stageFull, names...); n < 2 && status != [2]byte{} || n == 2 && status != [2]byte{3, 2} {
			t.Errorf("session %d: status %v", n, status)
		}
	}
	last.ends()
}

// Connections that send no login don't prevent others from logging in.
func TestTarget_SilentConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		target, _ := newTarget(t)
		target.MaxSessions = 2
		connect := func() net.Conn {
			here, there := net.Pipe()
			go func() { _ = target.serve(there) }()
			synctest.Wait()
			t.Cleanup(func() { _ = here.Close() })
			return here
		}
		for range 5 {
			connect()
		}
		i := &initiator{T: t, conn: connect(), stage: stageOperational}
		if _, status := i.login(stageFull, names...); status != [2]byte{} {
			t.Error(status)
		}
	})
}

func TestTarget_OtherInitiator(t *testing.T) {
	target, _ := newTarget(t)
	target.Initiators = []string{"iqn.2026-01.io.virtclaim:other", names[0].value}
	address := serve(t, target)
	loggedIn(t, address)
	i := dial(t, address)
	i.stage = stageOperational
	if _, status := i.login(stageFull, pair{"InitiatorName", "iqn.2026-01.io.virtclaim:stranger"}, names[1]); status != [2]byte{2, 2} {
		t.Error(status)
	}
}

func TestTarget_LaterSessionReplacesFormer(t *testing.T) {
	target, disk := newTarget(t)
	target.MaxSessions = 1
	address := serve(t, target)
	former := loggedIn(t, address)
	waitsForData(former)
	if r := loggedIn(t, address).command(0, cdb10(0x28, 0, 1), BlockSize, nil, 0); !bytes.Equal(r.data, disk.b[:BlockSize]) {
		t.Error(r)
	}
	former.ends()
}

func TestTarget_Discovery(t *testing.T) {
	target, _ := newTarget(t)
	address := serve(t, target)
	normal := loggedIn(t, address)
	i := dial(t, address)
	i.stage = stageOperational
	if _, status := i.login(stageFull, names[0], pair{"SessionType", "Discovery"}); status != [2]byte{} {
		t.Fatal(status)
	}
	p := i.ask(opText, flagFinal, pairs{{"SendTargets", "All"}}.text(), func(b []byte) { be.PutUint32(b[20:], noTag) })
	if want := "TargetName=" + targetName + "\x00TargetAddress=" + address + ",1\x00"; string(p.data) != want {
		t.Errorf("%q", p.data)
	}
	if p := i.ask(opCommand, flagFinal|flagRead, nil, func(b []byte) { fillCommand(b, 0, cdb10(0x28, 0, 1), 512) }); p.op() != opReject {
		t.Errorf("a command has the answer %#x", p.op())
	}
	if p := i.ask(opLogout, flagFinal, nil, nil); p.op() != opLogoutDone || p.header[2] != 0 {
		t.Errorf("opcode %#x, response %d", p.op(), p.header[2])
	}
	i.ends()
	normal.command(0, []byte{0}, 0, nil, 0) // it is still there
}

func TestTarget_Login(t *testing.T) {
	chap, mutual := &Credentials{"user", "secret-of-initiators"}, &Credentials{"back", "secret-of-the-target"}
	answerOf := func(c Credentials, answers pairs) pair {
		challenge, _ := hex.DecodeString(answers.get("CHAP_C")[2:])
		var id byte
		_, _ = fmt.Sscan(answers.get("CHAP_I"), &id)
		return pair{"CHAP_R", "0x" + hex.EncodeToString(c.answer(id, challenge))}
	}
	offer, algorithm := append(slices.Clone(names), pair{"AuthMethod", "CHAP,None"}), pair{"CHAP_A", "7,5"}
	for _, c := range []struct {
		what         string
		chap, mutual *Credentials
		login        func(i *initiator) (pairs, [2]byte)
		want         [2]byte
	}{
		{"without CHAP", nil, nil, func(i *initiator) (pairs, [2]byte) { return i.login(1, offer...) }, [2]byte{}},
		{"CHAP where there is none", nil, nil, func(i *initiator) (pairs, [2]byte) {
			return i.login(1, append(slices.Clone(names), pair{"AuthMethod", "CHAP"})...)
		}, [2]byte{2, 1}},
		{"another target", nil, nil, func(i *initiator) (pairs, [2]byte) {
			return i.login(1, names[0], pair{"TargetName", "iqn.2026-01.io.virtclaim:other"})
		}, [2]byte{2, 3}},
		{"no target", nil, nil, func(i *initiator) (pairs, [2]byte) { return i.login(1, names[0]) }, [2]byte{2, 7}},
		{"no initiator", nil, nil, func(i *initiator) (pairs, [2]byte) { return i.login(1, names[1]) }, [2]byte{2, 7}},
		{"a key twice", nil, nil, func(i *initiator) (pairs, [2]byte) { return i.login(1, append(names, names[0])...) }, [2]byte{2, 0}},
		{"a stage that is none", nil, nil, func(i *initiator) (pairs, [2]byte) { return i.login(2, names...) }, [2]byte{2, 0}},
		{"right", chap, nil, func(i *initiator) (pairs, [2]byte) {
			i.login(1, offer...)
			answers, _ := i.login(1, algorithm)
			return i.login(1, pair{"CHAP_N", "user"}, answerOf(*chap, answers))
		}, [2]byte{}},
		{"wrong secret", chap, nil, func(i *initiator) (pairs, [2]byte) {
			i.login(1, offer...)
			answers, _ := i.login(1, algorithm)
			return i.login(1, pair{"CHAP_N", "user"}, answerOf(Credentials{Secret: "guess"}, answers))
		}, [2]byte{2, 1}},
		{"wrong user", chap, nil, func(i *initiator) (pairs, [2]byte) {
			i.login(1, offer...)
			answers, _ := i.login(1, algorithm)
			return i.login(1, pair{"CHAP_N", "root"}, answerOf(*chap, answers))
		}, [2]byte{2, 1}},
		{"answer before the challenge", chap, nil, func(i *initiator) (pairs, [2]byte) {
			i.login(1, offer...)
			return i.login(1, pair{"CHAP_N", "user"}, pair{"CHAP_R", "0x" + hex.EncodeToString(chap.answer(0, nil))})
		}, [2]byte{2, 1}},
		{"none offered", chap, nil, func(i *initiator) (pairs, [2]byte) {
			return i.login(1, append(slices.Clone(names), pair{"AuthMethod", "None"})...)
		}, [2]byte{2, 1}},
		{"no security stage", chap, nil, func(i *initiator) (pairs, [2]byte) {
			i.stage = stageOperational
			return i.login(3, offer...)
		}, [2]byte{2, 1}},
		{"security stage passed over", chap, nil, func(i *initiator) (pairs, [2]byte) {
			i.login(1, offer...)
			i.stage = stageOperational
			return i.login(3)
		}, [2]byte{2, 0}},
		{"only SHA-256", chap, nil, func(i *initiator) (pairs, [2]byte) {
			i.login(1, offer...)
			return i.login(1, pair{"CHAP_A", "7"})
		}, [2]byte{2, 1}},
		{"mutual", chap, mutual, func(i *initiator) (pairs, [2]byte) {
			i.login(1, offer...)
			answers, _ := i.login(1, algorithm)
			back, status := i.login(1, pair{"CHAP_N", "user"}, answerOf(*chap, answers), pair{"CHAP_I", "9"}, pair{"CHAP_C", "0bYWJjZA=="})
			if want := "0x" + hex.EncodeToString(mutual.answer(9, []byte("abcd"))); back.get("CHAP_N") != "back" || back.get("CHAP_R") != want {
				t.Error("mutual:", back)
			}
			return back, status
		}, [2]byte{}},
		{"mutual, reflected", chap, mutual, func(i *initiator) (pairs, [2]byte) {
			i.login(1, offer...)
			answers, _ := i.login(1, algorithm)
			return i.login(1, pair{"CHAP_N", "user"}, answerOf(*chap, answers), pair{"CHAP_I", "9"}, pair{"CHAP_C", answers.get("CHAP_C")})
		}, [2]byte{2, 1}},
		{"mutual, malformed", chap, mutual, func(i *initiator) (pairs, [2]byte) {
			i.login(1, offer...)
			answers, _ := i.login(1, algorithm)
			return i.login(1, pair{"CHAP_N", "user"}, answerOf(*chap, answers), pair{"CHAP_I", "999"}, pair{"CHAP_C", "0x"})
		}, [2]byte{2, 1}},
		{"mutual where there is none", chap, nil, func(i *initiator) (pairs, [2]byte) {
			i.login(1, offer...)
			answers, _ := i.login(1, algorithm)
			return i.login(1, pair{"CHAP_N", "user"}, answerOf(*chap, answers), pair{"CHAP_I", "9"}, pair{"CHAP_C", "0xab"})
		}, [2]byte{2, 1}},
	} {
		t.Run(c.what, func(t *testing.T) {
			target, disk := newTarget(t)
			target.CHAP, target.Mutual = c.chap, c.mutual
			target.Log = func(err error) {
				if strings.Contains(err.Error(), "secret-of") {
					t.Error(err)
				}
			}
			i := dial(t, serve(t, target))
			answers, status := c.login(i)
			if status != c.want {
				t.Fatalf("status %v, answers %v", status, answers)
			}
			if c.want != [2]byte{} {
				i.ends()
				return
			}
			if answers, status := i.login(stageFull, pair{"MaxRecvDataSegmentLength", "8192"}); status != [2]byte{} || answers.get("MaxRecvDataSegmentLength") == "" {
				t.Fatal(answers, status)
			}
			if r := i.command(0, cdb10(0x28, 0, 1), BlockSize, nil, 0); !bytes.Equal(r.data, disk.b[:BlockSize]) {
				t.Error(r)
			}
		})
	}
}

func TestLimits_Negotiate(t *testing.T) {
	for _, c := range []struct{ key, value, want string }{
		{"HeaderDigest", "CRC32C,None", "None"},
		{"DataDigest", "CRC32C", reject},
		{"InitialR2T", no, yes},
		{"ImmediateData", no, no},
		{"ImmediateData", "maybe", reject},
		{"MaxBurstLength", "16777215", "1048576"},
		{"MaxBurstLength", "511", reject},
		{"FirstBurstLength", "0x1000", "4096"},
		{"MaxConnections", "8", "1"},
		{"DefaultTime2Wait", "2", "2"},
		{"DefaultTime2Retain", "20", "0"},
		{"ErrorRecoveryLevel", "2", "0"},
		{"MaxRecvDataSegmentLength", "1048576", ""},
		{"X-org.example.key", "1", notUnderstood},
	} {
		l := defaultLimits()
		if got := l.negotiate(c.key, c.value); got != c.want {
			t.Errorf("%s=%s: %q", c.key, c.value, got)
		}
		if l.send > segmentSize || l.burst > 1<<20 {
			t.Errorf("%s=%s: %+v", c.key, c.value, l)
		}
	}
}

// A login that takes long, and an initiator that reads nothing, end. The clock is a fake one.
func TestTarget_SlowInitiatorsEnd(t *testing.T) {
	for what, talk := range map[string]func(conn net.Conn){
		"no login": func(net.Conn) {},
		"nothing is read": func(conn net.Conn) {
			i := &initiator{T: t, conn: conn, stage: stageOperational}
			i.login(stageFull, names...)
			i.send(opNopOut, flagFinal, nil, nil)
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			target, _ := newTarget(t)
			here, there := net.Pipe()
			ended := make(chan error)
			go func() { ended <- target.serve(there) }()
			talk(here)
			if err := <-ended; !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("%s: %v", what, err)
			}
		})
	}
}

func TestTarget_ServeChecksCredentials(t *testing.T) {
	for _, target := range []*Target{
		{},
		{Name: targetName, CHAP: &Credentials{User: "user"}},
		{Name: targetName, Mutual: &Credentials{"a", "b"}},
		{Name: targetName, CHAP: &Credentials{"a", "same"}, Mutual: &Credentials{"b", "same"}},
	} {
		if err := target.Serve(t.Context(), listen(t)); err == nil || strings.Contains(err.Error(), "same\"") {
			t.Error(target, err)
		}
	}
}
