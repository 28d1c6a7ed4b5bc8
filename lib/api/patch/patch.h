// JSON Patch (RFC 6902), JSON Merge Patch (RFC 7386) and Kubernetes' strategic merge patch. They work on
// the JSON form, so that a patch sees the fields as users spell them; the caller decodes the result (and
// so validates it).
#pragma once

#include <string>
#include <string_view>

#include <boost/json/value.hpp>

#include "lib/api/scheme.h"
#include "lib/base/error.h"

namespace keelson::api {

// How one level of a type merges. A protobuf descriptor implements it, and a CRD's schema will.
class TypeView {
 public:
  virtual ~TypeView() = default;
  struct Field {
    bool merge = false;        // patchStrategy merge
    bool retain_keys = false;  // patchStrategy retainKeys
    bool replace = false;      // patchStrategy replace
    bool map = false;          // a map: any key, and `type` is that of its values
    std::string_view merge_key;
    const TypeView* type =
        nullptr;  // of the value, or of a list's or map's items; null for scalars and free-form
  };
  // nullopt-like: known=false when the type has no such field.
  virtual bool Find(std::string_view json_name, Field& field) const = 0;
};
// Views live for ever; thread safe.
const TypeView& TypeViewOf(const Descriptor* descriptor);

inline constexpr size_t kMaxJsonPatchOperations = 10'000;  // as upstream

// Malformed patch: kBadRequest. `test` that fails, path that is not there: kInvalid (422).
Result<boost::json::value> ApplyJsonPatch(boost::json::value document, const boost::json::value& patch);
boost::json::value ApplyMergePatch(boost::json::value document, const boost::json::value& patch);
// Directives: $patch (replace, delete, merge), $deleteFromPrimitiveList/x, $setElementOrder/x, $retainKeys.
Result<boost::json::value> ApplyStrategicMergePatch(boost::json::value document,
                                                    const boost::json::value& patch, const TypeView& type);

// As Go prints a decoded value, for errors: map[a:[1 2] b:x].
std::string PrintGo(const boost::json::value& value);

}  // namespace keelson::api
