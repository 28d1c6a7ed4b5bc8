// Patches work on the JSON form, so they see fields as users spell them.
#include <algorithm>

#include <fmt/format.h>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "controlplane/apiextensions/custom_objects.h"
#include "controlplane/registry/field_manager.h"
#include "controlplane/registry/impl.h"
#include "controlplane/registry/patch_errors.h"
#include "controlplane/storage/convert.h"
#include "lib/api/codec/codec.h"
#include "lib/api/codec/custom_object.h"
#include "lib/api/meta.h"
#include "lib/api/patch/patch.h"
#include "lib/k8s/field_error.h"

namespace keelson::registry {
namespace {

namespace json = boost::json;

Result<json::value> Parse(std::string_view text) {
  boost::system::error_code error;
  json::parse_options options;
  options.max_depth = 1000;
  json::value value = json::parse(json::string_view(text.data(), text.size()), error, {}, options);
  if (error) return Error(Code::kBadRequest, fmt::format("error decoding patch: {}", error.message()));
  return value;
}

std::string_view GoKind(const json::value& value) {
  switch (value.kind()) {
    case json::kind::array:
      return "array";
    case json::kind::string:
      return "string";
    case json::kind::bool_:
      return "bool";
    case json::kind::object:
      return "object";
    default:
      return "number";
  }
}

// An empty list is a request (AsksForReset), which a message cannot express.
bool HasEmptyManagedFields(const json::value& document) {
  const json::object* object = document.if_object();
  const json::value* metadata = object ? object->if_contains("metadata") : nullptr;
  const json::object* fields = metadata ? metadata->if_object() : nullptr;
  const json::value* managed = fields ? fields->if_contains("managedFields") : nullptr;
  return managed && managed->is_array() && managed->get_array().empty();
}

// The patched document must still be an object of the kind.
Error NotAnObject(std::string_view shown, std::string_view why) {
  std::string message = fmt::format(" \"\" is invalid: patch: Invalid value: {}: {}", k8s::Quote(shown), why);
  ErrorDetails details;
  details.causes.push_back(
      {"FieldValueInvalid", fmt::format("Invalid value: {}: {}", k8s::Quote(shown), why), "patch"});
  return Error(Code::kInvalid, std::move(message)).WithDetails(std::move(details));
}

// Upstream's error does not say what is wrong with the operations of a JSON patch.
Result<json::value> ApplyOperations(json::value document, const json::value& patch) {
  if (!patch.is_array()) {
    return Error(
        Code::kBadRequest,
        fmt::format("json: cannot unmarshal {} into Go value of type jsonpatch.Patch", GoKind(patch)));
  }
  Result<json::value> applied = api::ApplyJsonPatch(std::move(document), patch);
  if (applied) return applied;
  if (applied.error().Is(Code::kTooLarge) && patch.get_array().size() > api::kMaxJsonPatchOperations) {
    return Error(Code::kTooLarge, "Request entity too large: " + applied.error().message());
  }
  return Error(Code::kInvalid, "the server rejected our request due to an error in our request")
      .WithDetails({});
}

Result<json::value> Apply(json::value document, const json::value& patch, PatchType type,
                          const Message& current) {
  if (type == PatchType::kJson) return ApplyOperations(std::move(document), patch);
  if (!patch.is_object()) {
    return Error(Code::kBadRequest,
                 fmt::format("{}json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
                             type == PatchType::kMerge ? "error decoding patch: " : "", GoKind(patch)));
  }
  if (type == PatchType::kMerge) return api::ApplyMergePatch(std::move(document), patch);
  return api::ApplyStrategicMergePatch(std::move(document), patch, api::TypeViewOf(current.GetDescriptor()));
}

// Decodes the patched object. A strategic patch may contain any kind and apiVersion. Other patches may
// produce an object of another version, which is converted back.
Result<std::unique_ptr<Message>> DecodePatched(const Message& current, const api::GroupVersionKind& gvk,
                                               PatchType type, std::string_view text,
                                               api::DecodeReport& report) {
  const ResourceInfo* own = nullptr;
  const ResourceInfo* other = nullptr;
  if (type != PatchType::kStrategicMerge) {
    KEELSON_ASSIGN_OR_RETURN(api::TypeMeta said, api::PeekTypeMeta(text));
    if (said.kind.empty()) said.kind = gvk.kind;
    if (said.api_version.empty()) said.api_version = gvk.ApiVersion();
    if (said.kind != gvk.kind || said.api_version != gvk.ApiVersion()) {
      auto [group, version] = api::SplitApiVersion(said.api_version);
      own = api::FindKind(gvk.group, gvk.version, gvk.kind);
      other = api::FindKind(group, version, said.kind);
      if (!other && !api::FindMessage(group, version, said.kind)) {
        return Error(Code::kInvalid,
                     fmt::format("no kind \"{}\" is registered for version \"{}\" in scheme \"keelson\"",
                                 said.kind, said.api_version));
      }
      if (!own || !other || &storage::StoredAs(*own) != &storage::StoredAs(*other)) {
        return Error(
            Code::kInvalid,
            fmt::format("converting ({}.{}) to ({}.{}): unknown conversion", version, said.kind,
                        gvk.group.empty() ? "core" : gvk.group.substr(0, gvk.group.find('.')), gvk.kind));
      }
    }
  }
  std::unique_ptr<Message> object =
      other ? api::NewObject(other->descriptor()) : std::unique_ptr<Message>(current.New());
  KEELSON_RETURN_IF_ERROR(api::DecodeJson(text, *object, &report));
  return other ? storage::Convert(*object, *own) : std::move(object);
}

// Fields that appear twice in the patch itself.
std::vector<std::string> Duplicates(const Message& current, std::string_view patch) {
  std::unique_ptr<Message> scratch(current.New());
  api::DecodeReport report;
  // Directives and nulls may not fit the type; this finds what comes before them.
  (void)api::DecodeJson(patch, *scratch, &report);
  std::erase_if(report.problems,
                [](const std::string& problem) { return !problem.starts_with("duplicate "); });
  return std::move(report.problems);
}

// Whether a merge patch of a custom object changes nothing but its content.
bool IsOfContent(const json::value& patch) {
  const json::object* members = patch.if_object();
  if (!members) return false;
  constexpr std::string_view kOthers[] = {"apiVersion", "kind", "metadata"};
  return std::none_of(std::begin(kOthers), std::end(kOthers), [&](std::string_view name) {
    return members->contains(json::string_view(name.data(), name.size()));
  });
}

// Applies such a patch, without a detour over the JSON form of metadata. Null where there is something to say of the
// patch or its outcome.
std::unique_ptr<Message> PatchContent(const Message& current, const ResourceInfo& info,
                                      const json::value& patch, std::string_view text,
                                      FieldValidation validation) {
  Result<json::object> content = api::ContentOf(current);
  if (!content) return nullptr;
  json::value patched = api::ApplyMergePatch(json::value(*std::move(content)), patch);
  std::unique_ptr<Message> object = Clone(current);
  const Result<std::vector<std::string>> unknown =
      apiextensions::CoerceContent(*apiextensions::CustomOf(info), std::move(patched.get_object()), *object);
  if (!unknown) return nullptr;
  if (validation == FieldValidation::kIgnore) return object;
  return unknown->empty() && Duplicates(current, text).empty() ? std::move(object) : nullptr;
}

// An apply that creates must create the object in the URL.
Result<> CheckApplied(const ResourceInfo& info, const Message& object, std::string_view name) {
  const metav1::ObjectMeta& meta = api::Meta(object);
  if (!meta.uid().empty()) {
    return ConflictError(
        info, name,
        fmt::format("uid mismatch: the provided object specified uid {}, and no existing object was found",
                    meta.uid()));
  }
  if (meta.name() == name) return {};
  if (meta.name().empty()) {
    return Error(Code::kBadRequest,
                 fmt::format("the name of the object ({} based on URL) was undeterminable: "
                             "name must be provided",
                             name));
  }
  return Error(
      Code::kBadRequest,
      fmt::format("the name of the object ({}) does not match the name on the URL ({})", meta.name(), name));
}

}  // namespace

Result<Written> Registry::Impl::Apply(const ResourceInfo& info, std::string_view ns, std::string_view name,
                                      std::string_view config, const WriteOptions& options) {
  Result<json::value> parsed = Parse(config);
  if (!parsed) return Error(Code::kBadRequest, "error decoding YAML: " + parsed.error().message());
  const ResourceInfo& main = MainRow(info);
  const bool is_scale = SubresourceOf(info) == "scale";
  Part part = Part::kMain;
  if (!is_scale) {
    KEELSON_ASSIGN_OR_RETURN(part, PartOf(info));
  }
  const api::FieldFilter& filter = is_scale ? api::FieldFilter::Everything() : ResetFilter(main, part);
  auto apply = [&](const Message* live) {
    return ManageApply({info, options.field_manager, clock.Now(), filter}, live, *parsed, options.force);
  };
  auto change = [&](const Message& live) { return apply(&live); };
  if (is_scale) return UpdateScale(info, ns, name, change, options, true);
  UpdateRequest request{main, ns, name, part, &info, change, {}, true, true};
  if (part == Part::kMain) {
    request.create = [&]() -> Result<std::unique_ptr<Message>> {
      KEELSON_ASSIGN_OR_RETURN(std::unique_ptr<Message> object, apply(nullptr));
      KEELSON_RETURN_IF_ERROR(CheckApplied(info, *object, name));
      return object;
    };
  }
  return Update(request, options);
}

Result<std::unique_ptr<Message>> ApplyPatch(const Message& current, const ResourceInfo& info, PatchType type,
                                            std::string_view patch, FieldValidation validation,
                                            std::vector<std::string>& warnings) {
  const api::GroupVersionKind gvk = info.Gvk();
  KEELSON_ASSIGN_OR_RETURN(json::value parsed, Parse(patch));
  if (info.IsCustom() && type == PatchType::kMerge && IsOfContent(parsed)) {
    if (auto object = PatchContent(current, info, parsed, patch, validation)) return object;
  }
  std::string text = api::EncodeJson(current, gvk);
  KEELSON_ASSIGN_OR_RETURN(json::value document, Parse(text));
  KEELSON_ASSIGN_OR_RETURN(document, Apply(std::move(document), parsed, type, current));
  text = json::serialize(document);
  const bool secret = current.GetDescriptor() == corev1::Secret::descriptor();
  auto wrong = [&](std::string_view why) {
    if (secret) return NotAnObject("<secret contents redacted>", why);
    return NotAnObject(type == PatchType::kStrategicMerge ? api::PrintGo(parsed) : text, why);
  };
  api::DecodeReport report;
  Result<std::unique_ptr<Message>> decoded = DecodePatched(current, gvk, type, text, report);
  if (!decoded) {
    const std::string& why = decoded.error().message();
    return wrong(type == PatchType::kStrategicMerge ? ConverterWords(why) : why);
  }
  std::unique_ptr<Message> object = std::move(*decoded);
  if (info.IsCustom()) {
    Result<std::vector<std::string>> unknown = apiextensions::Coerce(*apiextensions::CustomOf(info), *object);
    if (!unknown) return wrong(unknown.error().message());
    report.problems.insert(report.problems.end(), unknown->begin(), unknown->end());
  }
  if (HasEmptyManagedFields(document)) api::MutableMeta(*object).add_managed_fields();
  if (validation == FieldValidation::kIgnore) return object;
  std::vector<std::string> problems;
  if (type != PatchType::kJson) problems = Duplicates(current, patch);
  problems.insert(problems.end(), report.problems.begin(), report.problems.end());
  if (problems.empty()) return object;
  if (validation == FieldValidation::kStrict) {
    return wrong(fmt::format("strict decoding error: {}", fmt::join(problems, ", ")));
  }
  warnings = std::move(problems);
  return object;
}

}  // namespace keelson::registry
