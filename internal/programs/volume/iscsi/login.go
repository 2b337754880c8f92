package iscsi

import (
	"crypto/md5" //nolint:gosec // the algorithm of CHAP that all initiators have
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
)

// Credentials are a user and a secret of CHAP.
type Credentials struct{ User, Secret string }

// answer is the answer to a challenge (RFC 1994).
func (c Credentials) answer(id byte, challenge []byte) []byte {
	sum := md5.Sum(append(append([]byte{id}, c.Secret...), challenge...)) //nolint:gosec // see above
	return sum[:]
}

// refusal is a status of a login response (RFC 7143, section 11.13.5).
type refusal struct {
	class, detail byte
	why           string
}

func (r refusal) Error() string { return "login refused: " + r.why }

func initiatorError(why string) error { return refusal{2, 0, why} }
func authentication(why string) error { return refusal{2, 1, why} }
func outOfResources(sessions int) error {
	return refusal{3, 2, fmt.Sprintf("there are %d sessions, the limit", sessions)}
}

const (
	stageSecurity    = 0
	stageOperational = 1
	stageFull        = 3
)

// login is the login phase of a session.
type login struct {
	*session
	stage                     byte
	text                      []byte
	named                     bool
	announced                 bool
	chapAgreed, authenticated bool
	id                        byte
	challenge                 []byte
}

// login leads the session to the full feature phase.
func (s *session) login() error {
	l := login{session: s, authenticated: s.target.CHAP == nil}
	var p pdu
	buffer := make([]byte, loginSegment)
	for first := true; ; first = false {
		if err := p.read(s.in, buffer); err != nil {
			return err
		}
		if p.op() != opLogin {
			return fmt.Errorf("opcode %#x came before a login", p.op())
		}
		if first {
			s.expCommandSN, s.maxCommandSN = p.commandSN(), p.commandSN()+window-1
			copy(s.key.isid[:], p.header[8:14])
			l.stage = p.header[1] >> 2 & 3
		}
		done, err := l.step(&p)
		if refused, ok := errors.AsType[refusal](err); ok {
			_ = l.reply(&p, nil, 0, refused) // it ends here either way
		}
		if done || err != nil {
			return err
		}
	}
}

// step answers a login request, unless it is refused.
func (l *login) step(p *pdu) (done bool, err error) {
	transit, next := p.has(flagFinal), p.header[1]&3
	switch {
	case p.header[3] != 0:
		return false, refusal{2, 5, "the initiator doesn't know version 0 of iSCSI"}
	case be.Uint16(p.header[14:]) != 0:
		return false, refusal{2, 10, "a session has one connection only"}
	case p.header[1]>>2&3 != l.stage || l.stage > stageOperational || transit && (next <= l.stage || next == 2):
		return false, initiatorError("the stages of the login are not in order")
	case len(l.text)+len(p.data) > maxText:
		return false, initiatorError("the login has too much text")
	}
	l.text = append(l.text, p.data...)
	if p.has(flagContinue) {
		return false, l.reply(p, nil, l.stage<<2, refusal{})
	}
	keys, err := parseText(l.text)
	if err != nil {
		return false, initiatorError(err.Error())
	}
	l.text = l.text[:0]
	answers, err := l.answer(keys)
	if err != nil {
		return false, err
	}
	flags := l.stage << 2
	if transit && l.authenticated {
		flags |= flagFinal | next
		l.stage = next
	}
	if l.stage == stageFull {
		if err := l.target.admit(l.session); err != nil {
			return false, err
		}
	}
	return l.stage == stageFull, l.reply(p, answers, flags, refusal{})
}

func (l *login) answer(keys pairs) (pairs, error) {
	var answers pairs
	if !l.named {
		if err := l.identify(keys); err != nil {
			return nil, err
		}
		l.named = true
		if !l.key.discovery {
			answers = pairs{{"TargetPortalGroupTag", "1"}}
		}
	}
	chap, err := l.authenticate(keys)
	if err != nil {
		return nil, err
	}
	if !l.authenticated && len(chap) == 0 {
		return nil, authentication("CHAP is required, and the initiator doesn't take part in it")
	}
	answers = append(answers, chap...)
	for _, key := range keys {
		switch key.key {
		case "InitiatorName", "InitiatorAlias", "TargetName", "SessionType", "AuthMethod", "CHAP_A", "CHAP_N", "CHAP_R", "CHAP_I", "CHAP_C":
			continue
		}
		if value := l.limits.negotiate(key.key, key.value); value != "" {
			answers = append(answers, pair{key.key, value})
		}
	}
	if l.stage == stageOperational && !l.announced {
		l.announced = true
		answers = append(answers, pair{"MaxRecvDataSegmentLength", strconv.Itoa(segmentSize)})
	}
	return answers, nil
}

// identify reads the keys that the first request has.
func (l *login) identify(keys pairs) error {
	l.key.initiator = keys.get("InitiatorName")
	name, named := keys.find("TargetName")
	l.key.discovery = keys.get("SessionType") == "Discovery"
	switch {
	case l.key.initiator == "":
		return refusal{2, 7, "InitiatorName is missing"}
	case len(l.key.initiator) > 223:
		return initiatorError("InitiatorName is longer than 223 bytes")
	case len(l.target.Initiators) > 0 && !slices.Contains(l.target.Initiators, l.key.initiator):
		return refusal{2, 2, fmt.Sprintf("the initiator %q is none of those that may log in", l.key.initiator)}
	case !named && !l.key.discovery:
		return refusal{2, 7, "TargetName is missing"}
	case named && name != l.target.Name:
		return refusal{2, 3, fmt.Sprintf("there is no target %.230q", name)}
	}
	return nil
}

// authenticate answers the keys of CHAP: which method, which algorithm, and the answer to the challenge come in a request each.
func (l *login) authenticate(keys pairs) (pairs, error) {
	methods, hasMethods := keys.find("AuthMethod")
	algorithms, hasAlgorithms := keys.find("CHAP_A")
	answer, hasAnswer := keys.find("CHAP_R")
	switch {
	case l.stage != stageSecurity:
		return nil, nil
	case hasMethods && l.target.CHAP == nil:
		if !offers(methods, "None") {
			return nil, authentication("the initiator wants CHAP, and the target has no credentials")
		}
		return pairs{{"AuthMethod", "None"}}, nil
	case hasMethods && !l.authenticated:
		if !offers(methods, "CHAP") {
			return nil, authentication("CHAP is required, and the initiator doesn't offer it")
		}
		l.chapAgreed = true
		return pairs{{"AuthMethod", "CHAP"}}, nil
	case hasAlgorithms && l.chapAgreed && l.challenge == nil:
		if !offers(algorithms, "5") {
			return nil, authentication("the initiator doesn't offer MD5 for CHAP")
		}
		random := make([]byte, 17)
		_, _ = rand.Read(random) // it never fails
		l.id, l.challenge = random[0], random[1:]
		return pairs{{"CHAP_A", "5"}, {"CHAP_I", strconv.Itoa(int(l.id))}, {"CHAP_C", "0x" + hex.EncodeToString(l.challenge)}}, nil
	case hasAnswer && l.challenge != nil && !l.authenticated:
		return l.verify(answer, keys)
	}
	return nil, nil
}

func (l *login) verify(answer string, keys pairs) (pairs, error) {
	got, err := parseBinary(answer)
	right := subtle.ConstantTimeCompare(got, l.target.CHAP.answer(l.id, l.challenge)) &
		subtle.ConstantTimeCompare([]byte(keys.get("CHAP_N")), []byte(l.target.CHAP.User))
	if err != nil || right != 1 {
		return nil, authentication("the user or the secret of CHAP is wrong")
	}
	back, isMutual := keys.find("CHAP_C")
	if !isMutual {
		l.authenticated = true
		return nil, nil
	}
	if l.target.Mutual == nil {
		return nil, authentication("the initiator wants mutual CHAP, and the target has no credentials for it")
	}
	challenge, err := parseBinary(back)
	id, idErr := strconv.ParseUint(keys.get("CHAP_I"), 0, 8)
	if err != nil || idErr != nil || len(challenge) == 0 || len(challenge) > 1024 {
		return nil, authentication("the challenge of the initiator is malformed")
	}
	if subtle.ConstantTimeCompare(challenge, l.challenge) == 1 {
		return nil, authentication("the initiator reflects the challenge of the target")
	}
	l.authenticated = true
	return pairs{{"CHAP_N", l.target.Mutual.User}, {"CHAP_R", "0x" + hex.EncodeToString(l.target.Mutual.answer(byte(id), challenge))}}, nil
}

func (l *login) reply(p *pdu, answers pairs, flags byte, status refusal) error {
	b := newPDU(opLoginReply, p.tag(), answers.text())
	b[1] = flags
	copy(b[8:14], p.header[8:14])
	if l.stage == stageFull && status.class == 0 {
		be.PutUint16(b[14:], 1) // the session handle (TSIH); a session has one connection, so it is never used to add another
	}
	b[36], b[37] = status.class, status.detail
	return l.send(b, sendStatus)
}
