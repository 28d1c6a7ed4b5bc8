// Rules that an object must satisfy to be stored, by kind, with upstream's messages. Objects must have
// their defaults (lib/k8s/defaulting/defaulting.h). Pure and thread safe. An empty result means valid.
#pragma once

#include <string_view>

#include <google/protobuf/message.h>

#include "lib/api/proto/core_v1_pod.pb.h"
#include "lib/k8s/field_error.h"

namespace keelson::k8s {

// Checks a new object: metadata (name, namespace, labels, annotations, owners, finalizers) and the kind's
// own rules. metadata.name must be set (generateName is done). Kinds without rules of their own get the
// metadata rules, and closed string types as the schema declares them.
FieldErrors Validate(const google::protobuf::Message& object);
// Validate() for a Pod, for programs that know no other kinds.
FieldErrors ValidatePod(const api::core::v1::Pod& pod);

// Checks an update: the rules for a new object, and the fields that must not change from `old`. Before
// this, the registry copies values that the user left out from `old`: resourceVersion, uid,
// creationTimestamp and allocated values (clusterIP, node ports).
FieldErrors ValidateUpdate(const google::protobuf::Message& object, const google::protobuf::Message& old);

// Checks an update through the status subresource: metadata, and the kind's rules for status.
FieldErrors ValidateStatusUpdate(const google::protobuf::Message& object,
                                 const google::protobuf::Message& old);

// Checks an update through another subresource ("ephemeralcontainers", "resize", ...). Falls back to
// ValidateUpdate() where the kind has no rules for it.
FieldErrors ValidatePartUpdate(const google::protobuf::Message& object, const google::protobuf::Message& old,
                               std::string_view subresource);

// Checks the body of the pods/binding subresource.
FieldErrors ValidateBinding(const google::protobuf::Message& binding);

// Checks a review (SubjectAccessReview, TokenReview, ...), which is answered and not stored.
FieldErrors ValidateReview(const google::protobuf::Message& review);

}  // namespace keelson::k8s
