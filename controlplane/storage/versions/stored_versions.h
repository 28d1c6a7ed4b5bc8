// The versions that objects of a built-in resource have in etcd: of this server, and of every kube-apiserver from 1.34 on.
#pragma once

#include <memory>
#include <string_view>

#include "lib/api/codec/codec.h"
#include "lib/api/scheme.h"
#include "lib/base/error.h"

namespace keelson::storage {

// How a stored value becomes an object of the resource that it is read as.
struct StoredVersion {
  const api::Descriptor* descriptor;  // of the message in the value
  // Whether the version is one that servers of these releases write. Others are read as if their fields were those of the resource.
  bool known;
  // Null: the message is one of the resource already.
  std::unique_ptr<api::Message> (*convert)(const api::Message& message, const api::ResourceInfo& resource);
};

// `stored`: the row that objects are stored as; `type`: of the value, which is not a row that shares the storage (FindStoredVersion() in
// convert.h knows these too). kInternal: the version has other fields by the same numbers or names, and this server cannot read it.
Result<StoredVersion> FindOwnVersion(const api::ResourceInfo& stored, const api::TypeMeta& type);

// Group, version and kind that this server writes. A kube-apiserver one release older, which may stand beside this one, knows them.
api::GroupVersionKind WrittenGvk(const api::ResourceInfo& stored);

}  // namespace keelson::storage
