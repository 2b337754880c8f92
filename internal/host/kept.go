package host

import (
	"maps"
	"sync"
	"time"
)

// kept is what one connection has read of objects, each of which counts until an event about it arrives on that connection, and for a time
// at most. Objects are known by keys; what a list shows of one is its entry: with another entry, it is read again.
type kept[K, E comparable, V any] struct {
	mu     sync.Mutex
	values map[K]keptValue[E, V]
	// changed counts the events of an object, and unclear those that may be about any.
	changed map[K]uint64
	unclear uint64
}

type keptValue[E comparable, V any] struct {
	entry E
	value V
	// first is when the object was first read since its last event.
	first, read time.Time
}

// trust is how long a kept value counts, and how long the object must have been there when it was read: one that is being made is not yet
// what it will be.
type trust struct{ within, rest time.Duration }

// seenTime is how long an object counts as having been there since it was last read: it may have been made again meanwhile.
const seenTime = 10 * time.Second

// epoch is how many events there were when an object began to be read.
type epoch struct {
	changed, unclear uint64
	began            time.Time
}

// get returns the kept value of an object, or else the epoch of the reading that is about to begin.
func (k *kept[K, E, V]) get(key K, entry E, t trust) (V, epoch, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	v, is := k.values[key]
	is = is && v.entry == entry && time.Since(v.read) < t.within && v.read.Sub(v.first) >= t.rest
	return v.value, epoch{k.changed[key], k.unclear, time.Now()}, is
}

// keep keeps what was read, unless there was an event since.
func (k *kept[K, E, V]) keep(key K, entry E, value V, at epoch) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.changed[key] != at.changed || k.unclear != at.unclear {
		return
	}
	if k.values == nil {
		k.values = map[K]keptValue[E, V]{}
	}
	first := at.began
	if v, is := k.values[key]; is && v.entry == entry && at.began.Sub(v.read) < seenTime {
		first = v.first
	}
	k.values[key] = keptValue[E, V]{entry, value, first, at.began}
}

// drop is called when an object has changed, or is about to.
func (k *kept[K, E, V]) drop(key K) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.changed == nil {
		k.changed = map[K]uint64{}
	}
	k.changed[key]++
	delete(k.values, key)
}

// dropAll is drop of all objects.
func (k *kept[K, E, V]) dropAll() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.unclear++
	clear(k.values)
}

// prune drops objects that are not listed any more.
func (k *kept[K, E, V]) prune(listed map[K]bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	maps.DeleteFunc(k.values, func(key K, _ keptValue[E, V]) bool { return !listed[key] })
}
