package kubevirt

import (
	"cmp"
	"strings"
)

// dataVolume is what fills a claim, if the DataVolume of its name is given.
func (r *diskReader) dataVolume(from *node, name string, volume values) values {
	binding := r.result.below("bindings").below(name)
	claim := binding.below("source").below("persistent_volume_claim")
	object := r.find("DataVolume", claim["claim_name"].(string))
	if object == nil {
		return volume
	}
	spec := object.at("spec")
	if spec == nil {
		object.refuse("it has no spec")
		return volume
	}
	claim.put("namespace", object.at("metadata.namespace").word())
	binding["claim"] = values{
		"apiVersion": "v1", "kind": "PersistentVolumeClaim", "spec": r.asked(spec),
		"metadata": values{"namespace": claim["namespace"], "name": claim["claim_name"]},
	}
	if source := r.content(spec, name, claim["namespace"]); source != nil {
		r.result.below("contents")[name] = values{"binding": name, "source": source}
		if binding["access_mode"] != "write-exclusive" {
			binding["access_mode"] = "write-exclusive"
			from.leave("only one machine may use a volume that is filled: bind the claim again for others")
		}
		return values{"content": name}
	}
	return volume
}

// asked is the spec of the claim that a DataVolume asks for.
func (r *diskReader) asked(spec *node) values {
	of, to, modes := cmp.Or(spec.at("storage"), spec.at("pvc")), values{}, []string{}
	r.carry(of, to, row{"volumeMode", "volumeMode", oneOf("Block", "Filesystem")}, row{"storageClassName", "storageClassName", word},
		row{"resources.requests.storage", "resources/requests/storage", size})
	if to["resources"] == nil {
		cmp.Or(of, spec).refuse("it asks for no storage: resources.requests.storage is missing")
	}
	for _, mode := range of.each("accessModes") {
		modes = append(modes, mode.or(""))
	}
	if len(modes) == 0 {
		modes = []string{"ReadWriteOnce"}
	}
	to["accessModes"] = modes
	return to
}

// content is what fills a DataVolume, nil if nothing does.
func (r *diskReader) content(spec *node, name string, namespace any) values {
	spec.at("contentType").one("kubevirt")
	source := spec.at("source")
	from := source.only(source.keys()...)
	if ref := spec.at("sourceRef"); ref != nil {
		ref.refuse("what it refers to is in the cluster: write the source of that here")
		return nil
	}
	if from == nil {
		cmp.Or(source, spec).refuse("it has no source")
		return nil
	}
	url := from.at("url").or("")
	switch {
	case from.name == "blank":
	case from.name == "pvc":
		if of := from.at("namespace").word(); of != nil {
			namespace = *of
		}
		return values{"volume": r.claim(from, name+".source", namespace, from.at("name"), "read-shared")} // no volume has a dot
	case strings.HasPrefix(url, "docker://"):
		from.skip("pullMethod")
		return values{"container_image": values{"image": strings.TrimPrefix(url, "docker://")}}
	case from.name != "s3" && (strings.HasPrefix(url, "http://") || strings.HasPrefix(url, "https://")):
		from.at("secretRef").leave("a download has no password: use a URL that needs none")
		to := values{"url": url}
		to.put("checksum", from.at("checksum").word())
		return values{"url": to}
	case from.name == "upload":
		from.leave("fill the claim with virtclaim_volume_content: its source.file has an image of this computer")
	default:
		from.leave("get the image yourself, and fill the claim with virtclaim_volume_content")
	}
	return nil
}

// inline is what the first designs have at the disk itself: storage by its address, a claim, or a container that makes the volume, with an
// access mode and a copy mode.
func (r *diskReader) inline(from, source *node, name string) (values, bool) {
	from.skip("type", "target.target", "target.device")
	mode, to := from.at("access-mode").or("write-exclusive"), values{}
	from.at("access-mode").one("read-only", "read-shared", "write-shared", "write-exclusive")
	if mode == "read-only" {
		mode = "read-shared"
	}
	r.result.below("bindings")[name] = values{"access_mode": mode, "source": to}
	switch iscsi, container := source.at("iscsi"), source.at("container"); {
	case iscsi != nil:
		lun := cmp.Or(iscsi.at("lun"), source.at("lun"), from.at("lun"))
		if iscsi.at("host.name") == nil || lun == nil {
			iscsi.refuse("it has no host.name, or no lun")
		}
		to["iscsi"] = values{
			"portal": iscsi.at("host.name").or("") + ":" + iscsi.at("host.port").or("3260"),
			"iqn":    iscsi.at("portal").or(""), "lun": lun.number(),
		}
	case container != nil:
		image := container.at("image").or("")
		if image == "" || strings.ContainsAny(image, " \t\n") {
			cmp.Or(container.at("image"), container).refuse("it is no name of an image")
		}
		to["dynamic"] = values{"container": values{"namespace": r.namespace, "image": image}}
	default:
		claim := cmp.Or(source.at("pvc.claimname"), source.at("pvc.claimName"), source.at("name"))
		if claim == nil {
			source.refuse("it is none of pvc, iscsi and container")
		}
		to["persistent_volume_claim"] = values{"namespace": r.namespace, "claim_name": claim.or("")}
	}
	return r.copied(from, name)
}

// copied is the volume of a binding, or a copy of it on the host.
func (r *diskReader) copied(from *node, name string) (values, bool) {
	volume := values{"binding": name}
	mode := from.at("copy.mode").one("none", "copy-on-write", "copy-on-read", "clone")
	if mode == nil || *mode == "none" {
		return volume, false
	}
	r.result.below("bindings").below(name)["access_mode"] = "read-shared"
	r.result.below("disks")[name] = values{"copy_mode": *mode, "source": values{"volume": volume}}
	r.carry(from, r.result.below("disks").below(name), row{"copy.usage-type|usage-type", "usage_type", word})
	return values{"disk": name}, false
}
