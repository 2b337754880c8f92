package kubevirt

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// reader makes a volume of one kind for a disk: the key of what has it, and whether what the guest writes is discarded. It is nil if the
// machine has no such disk.
type reader func(r *diskReader, from *node, name, device string) (volume values, isEphemeral bool)

// readers are those of the kinds of volumes, by their names in a manifest.
var readers = map[string]reader{
	"persistentVolumeClaim": (*diskReader).persistentVolumeClaim,
	"dataVolume":            (*diskReader).persistentVolumeClaim,
	"ephemeral":             (*diskReader).ephemeral,
	"containerDisk":         (*diskReader).containerDisk,
	"registryDisk":          (*diskReader).containerDisk,
	"cloudInitNoCloud":      (*diskReader).cloudInitNoCloud,
	"cloudInitConfigDrive":  (*diskReader).cloudInitConfigDrive,
	"emptyDisk":             (*diskReader).emptyDisk,
	"hostDisk":              (*diskReader).hostDisk,
	"configMap":             (*diskReader).files,
	"secret":                (*diskReader).files,
	"sysprep":               (*diskReader).files,
}

// source is the volume of a disk: that which it names, that of its own name, or what is written at the disk itself.
func (r *diskReader) source(from *node, name, device string) (volume values, isEphemeral bool) {
	if own := from.at("source"); own != nil {
		return r.inline(from, own, name)
	}
	at := cmp.Or(from.at("volumeName"), from.at("name"))
	if named := at.or(""); r.volumes[named] != nil {
		name = named
	}
	found := r.volumes[name]
	switch {
	case found == nil && device == "cdrom" && from.at("volumeName") == nil:
		return values{}, false // a drive without a medium
	case found == nil:
		at.refuse("there is no volume %.60q", at.text)
		return nil, false
	case r.used[name]:
		at.refuse("the volume %.60q is another disk's", name)
	}
	r.used[name] = true
	return r.volume(found, name, device)
}

// volume is that of the only source that it has.
func (r *diskReader) volume(from *node, name, device string) (volume values, isEphemeral bool) {
	found := from.only(slices.DeleteFunc(from.keys(), func(key string) bool { return key == "name" })...)
	if found == nil {
		from.refuse("it has no source")
		return nil, false
	}
	read := readers[found.name]
	if read == nil {
		found.leave("nothing here has its content: the machine has no such disk")
		return nil, false
	}
	return read(r, found, name, device)
}

// local adds a disk of the host.
func (r *diskReader) local(name string) (disk, volume values) {
	return r.result.below("disks").below(name), values{"disk": name}
}

// persistentVolumeClaim is a claim, or, as the first designs have it, its name alone.
func (r *diskReader) persistentVolumeClaim(from *node, name, device string) (values, bool) {
	from.at("hotpluggable").leave("each disk on virtio, scsi and usb is")
	claim := cmp.Or(from.at("claimName"), from.at("name"), from)
	mode := r.mode(from.at("readOnly").isOn() || device == "cdrom" || device == "floppy", name)
	return r.dataVolume(from, name, r.claim(from, name, r.namespace, claim, mode)), false
}

// mode is the access mode for a volume: its disk may be that of several machines.
func (r *diskReader) mode(isRead bool, name string) string {
	mode := "write-exclusive"
	for _, disk := range r.domain.each("devices.disks") {
		of := cmp.Or(disk.at("volumeName"), disk.at("name"))
		if of != nil && of.text == name && disk.at("shareable").isOn() {
			mode = "write-shared"
		}
	}
	if isRead {
		mode = "read-shared"
	}
	return mode
}

// claim binds a claim. Several bindings of one are only for reading.
func (r *diskReader) claim(from *node, key string, namespace any, at *node, mode string) values {
	claim, bindings := at.or(""), r.result.below("bindings")
	if claim == "" {
		from.refuse("it names no claim")
	}
	for _, of := range slices.Sorted(maps.Keys(bindings)) { // errors are the same each time
		binding := bindings[of]
		pvc, is := binding.(values).below("source")["persistent_volume_claim"].(values)
		isSame := is && pvc["claim_name"] == claim && pvc["namespace"] == namespace
		if isSame && (mode != "read-shared" || binding.(values)["access_mode"] != mode) {
			from.refuse("the claim %.60q is that of the volume %.60q, too", claim, of)
		}
	}
	to := bindings.below(key)
	to["access_mode"] = mode
	to.put("source/persistent_volume_claim", values{"namespace": namespace, "claim_name": claim})
	return values{"binding": key}
}

// ephemeral is an overlay over a claim, which many machines may read.
func (r *diskReader) ephemeral(from *node, name, _ string) (values, bool) {
	pvc := from.at("persistentVolumeClaim")
	pvc.skip("readOnly")
	disk, volume := r.local(name)
	disk["copy_mode"] = "copy-on-write"
	disk.put("source/volume", r.claim(from, name, r.namespace, cmp.Or(pvc.at("claimName"), pvc), "read-shared"))
	return volume, true
}

// containerDisk is an overlay over the disk in a container image, which is discarded.
func (r *diskReader) containerDisk(from *node, name, _ string) (values, bool) {
	if from.at("image") == nil {
		from.refuse("it has no image")
	}
	from.at("imagePullSecret").leave("the registry's password is that of Docker's configuration, or password_wo of a disk")
	disk, volume := r.local(name)
	r.carry(from, disk.below("source").below("container_image"), row{"image", "image", word}, row{"path", "path", word},
		row{"imagePullPolicy", "pull_policy", oneOf("Always", "IfNotPresent", "Never")})
	return volume, true
}

// emptyDisk is blank at each start.
func (r *diskReader) emptyDisk(from *node, name, _ string) (values, bool) {
	if from.at("capacity") == nil {
		from.refuse("it has no capacity")
	}
	disk, volume := r.local(name)
	r.carry(from, disk, row{"capacity", "size", size})
	return volume, true
}

// hostDisk is a raw file of the host.
func (r *diskReader) hostDisk(from *node, name, _ string) (values, bool) {
	file, mode := from.at("path").or(""), r.mode(false, name)
	if !path.IsAbs(file) {
		from.refuse("it has no path from /")
	}
	if from.at("shared").isOn() {
		mode = "write-shared"
	}
	if kind := from.at("type").one("Disk", "DiskOrCreate"); kind != nil && *kind != "Disk" {
		from.at("type").leave("the file must exist: qemu-img create -f raw makes one")
		from.skip("capacity")
	}
	r.result.below("bindings")[name] = values{"access_mode": mode, "source": values{"file": values{"path": file}}}
	return values{"binding": name}, false
}

// secret notes a Secret that is read, and returns what refers to it.
func (r *diskReader) secret(name string) values {
	r.find("Secret", name).skip()
	ref := values{"namespace": r.namespace, "name": name}
	r.result.below("secrets")[name] = ref
	return ref
}

// keyOf refers to one key of a Secret.
func (r *diskReader) keyOf(secret, key string) values {
	ref := maps.Clone(r.secret(secret))
	ref["key"] = key
	return ref
}

// data is a text of cloud-init, plain or in base64, or the name of the Secret that has it.
func (r *diskReader) data(from *node, of string) (text *string, secret string) {
	secrets := map[string]string{"user": "secretRef", "network": "networkDataSecretRef"}
	switch at := from.only(of+"Data", of+"DataBase64", secrets[of]); {
	case at == nil:
	case at.name == secrets[of]:
		secret = at.named("Secret")
	case at.name == of+"Data":
		text = at.word()
	default:
		decoded, err := base64.StdEncoding.DecodeString(at.or(""))
		if err != nil {
			at.refuse("it is no base64")
		}
		text = new(string(decoded))
	}
	return text, secret
}

// hostname is the name that the guest is told; empty if the machine has none.
func (r *diskReader) hostname() string {
	name, _, _ := strings.Cut(cmp.Or(r.spec.at("hostname"), r.machine.at("metadata.name")).or(""), ".")
	return name
}

func (r *diskReader) cloudInitNoCloud(from *node, name, _ string) (values, bool) {
	disk, volume := r.local(name)
	to := disk.below("source").below("cloud_init")
	for _, of := range []string{"user", "network"} {
		text, secret := r.data(from, of)
		if to.put(of+"_data", text); secret != "" {
			to[of+"_data_secret_ref"] = r.secret(secret)
		}
	}
	if host := r.hostname(); host != "" {
		to["meta_data"] = fmt.Sprintf("instance-id: %q\nlocal-hostname: %q\n", host+"."+r.namespace, host)
	}
	return volume, false
}

func (r *diskReader) cloudInitConfigDrive(from *node, name, _ string) (values, bool) {
	const folder = "openstack/latest/"
	disk, volume := r.local(name)
	to := disk.below("source").below("files")
	to["label"] = "config-2"
	for _, of := range [][2]string{{"user", "user_data"}, {"network", "network_data.json"}} {
		text, secret := r.data(from, of[0])
		if text != nil {
			to.below("content")[folder+of[1]] = *text
		}
		if secret != "" {
			to.below("secrets")[folder+of[1]] = r.keyOf(secret, r.spelling(secret, of[0]+"Data"))
		}
	}
	if host := r.hostname(); host != "" {
		id := host + "." + r.namespace
		text, _ := json.Marshal(map[string]string{"uuid": id, "instance_id": id, "hostname": host}) // texts are never refused
		to.below("content")[folder+"meta_data.json"] = string(text)
	}
	return volume, false
}

// spelling is the key of a Secret, which KubeVirt takes in two: in small letters, unless its manifest says otherwise.
func (r *diskReader) spelling(secret, key string) string {
	object := r.find("Secret", secret)
	if object.at("data."+key) != nil || object.at("stringData."+key) != nil {
		return key
	}
	return strings.ToLower(key)
}

// files are the keys of a ConfigMap or Secret, also as the answers of a Windows setup. Its manifest must be given, because a disk here
// names each key. Only a ConfigMap's values are looked at.
func (r *diskReader) files(from *node, name, _ string) (values, bool) {
	label := "cfgdata"
	if from.name == "sysprep" {
		label, from = from.name, cmp.Or(from.only("secret", "configMap"), from)
	}
	label = from.at("volumeLabel").or(label)
	at, kind := cmp.Or(from.at("name"), from.at("secretName")), "ConfigMap"
	if from.name == "secret" {
		kind = "Secret"
	}
	if at == nil {
		from.refuse("it names no %s", kind)
		return nil, false
	}
	object := r.find(kind, at.or(""))
	if object == nil {
		from.leave(fmt.Sprintf("which keys it has is in no manifest: give that of the %s %.60s, too", kind, at.text))
		return nil, false
	}
	disk, volume := r.local(name)
	to := disk.below("source").below("files")
	to["label"] = label
	for _, data := range []*node{object.at("data"), object.at("stringData")} {
		for _, key := range data.keys() {
			if kind == "Secret" {
				to.below("secrets")[key] = r.keyOf(at.text, key)
			} else {
				to.below("content")[key] = data.fields[key].or("")
			}
		}
	}
	return volume, false
}
