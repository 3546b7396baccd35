package ingest

// Proof returns the proof of the resource.
func (v *Valid) Proof() string { return v.proof }

// Signer returns the fingerprint of the trusted key that has signed the resource; "" if none has.
func (v *Valid) Signer() string { return v.signer }
