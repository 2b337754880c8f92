// Package guide has the address of the guides, where a message that stays short leaves what else is worth knowing.
package guide

// See is the beginning of a link, which ends with the name of a guide, # and the anchor of a heading in it.
const See = "See https://registry.terraform.io/providers/virtclaim/virtclaim/latest/docs/guides/"
