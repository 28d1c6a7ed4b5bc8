// Custom resources: their definitions say what the static tables say of built-in kinds. The rules are those of
// apiextensions-apiserver's registry/customresource.
#include "controlplane/apiextensions/custom_objects.h"
#include "controlplane/registry/custom_scale.h"
#include "controlplane/registry/strategy.h"
#include "lib/api/codec/codec.h"
#include "lib/api/codec/custom_object.h"
#include "lib/api/meta.h"
#include "lib/base/log.h"
#include "lib/k8s/validation/validation.h"

namespace keelson::registry {
namespace {

using apiextensions::CustomRow;
using apiextensions::Version;

boost::json::object Content(const Message& object) {
  Result<boost::json::object> content = api::ContentOf(object);
  if (content) return std::move(*content);
  log::Warn("Cannot read a custom object", {{"object", api::KeyOf(object)}, {"err", content.error()}});
  return {};
}

// False: the content certainly has no member "status" at its top. Spares most writes a parse.
bool MayHaveStatus(const Message& object) {
  return api::ContentText(object).find("\"status\":") != std::string::npos;
}

// Takes a member of the content from another object; null: removes it.
void SetMember(Message& object, const char* name, const boost::json::value* value) {
  boost::json::object content = Content(object);
  if (value) {
    content[name] = *value;
  } else {
    content.erase(name);
  }
  api::SetContent(object, content);
}

class CustomStrategy : public Strategy {
 public:
  explicit CustomStrategy(const CustomRow& row) : Strategy(row), row_(row) { unconditional_update_ = false; }

  Result<> MayCreate() const override {
    std::shared_ptr<const apiextensions::Definition> definition = row_.owner->definition();
    if (definition && !definition->terminating) return {};
    return Error(Code::kMethodNotAllowed,
                 "create not allowed while custom resource definition is terminating");
  }
  void SetDefaults(Message& object) const override {
    // Prunes, too: admission and conversion may have added what the schema does not know.
    if (Result<std::vector<std::string>> done = apiextensions::Coerce(row_, object); !done) {
      log::Debug("Cannot apply a schema", {{"object", api::KeyOf(object)}, {"err", done.error()}});
    }
  }
  void PrepareCreate(const Context&, Message& object) const override {
    if (HasStatus() && MayHaveStatus(object)) SetMember(object, "status", nullptr);
    api::MutableMeta(object).set_generation(1);
  }
  void PrepareUpdate(const Context&, Message& object, const Message& old) const override {
    if (HasStatus() && (MayHaveStatus(object) || MayHaveStatus(old))) {
      const boost::json::object before = Content(old);
      SetMember(object, "status", before.if_contains("status"));
    }
    if (api::ContentText(object) != api::ContentText(old)) {
      api::MutableMeta(object).set_generation(api::Meta(old).generation() + 1);
    }
  }
  void PreparePart(const Context&, Part, Message& object, const Message& old) const override {
    const boost::json::object content = Content(object);
    const boost::json::value* status = content.if_contains("status");
    ManagedFieldsKeeper keeper(object);
    object.CopyFrom(old);
    SetMember(object, "status", status);
  }
  k8s::FieldErrors Validate(const Message& object) const override {
    return With(k8s::Validate(object), object, nullptr, false);
  }
  k8s::FieldErrors ValidateUpdate(Part part, std::string_view, const Message& object,
                                  const Message& old) const override {
    if (part == Part::kStatus) return With(k8s::ValidateStatusUpdate(object, old), object, &old, true);
    k8s::FieldErrors errors = k8s::ValidateStatusUpdate(object, old);  // metadata
    return With(std::move(errors), object, &old, false);
  }

 private:
  // The managed fields of a write survive that all else comes from the stored object.
  class ManagedFieldsKeeper {
   public:
    explicit ManagedFieldsKeeper(Message& object) : object_(object) {
      kept_.Swap(api::MutableMeta(object).mutable_managed_fields());
    }
    ~ManagedFieldsKeeper() { kept_.Swap(api::MutableMeta(object_).mutable_managed_fields()); }
    ManagedFieldsKeeper(const ManagedFieldsKeeper&) = delete;

   private:
    Message& object_;
    google::protobuf::RepeatedPtrField<metav1::ManagedFieldsEntry> kept_;
  };

  bool HasStatus() const {
    std::shared_ptr<const Version> version = row_.owner->VersionOf(row_);
    return version && version->has_status;
  }
  k8s::FieldErrors With(k8s::FieldErrors errors, const Message& object, const Message* old,
                        bool status_only) const {
    for (k8s::FieldError& error : apiextensions::Validate(row_, object, old, status_only)) {
      errors.push_back(std::move(error));
    }
    for (k8s::FieldError& error : CheckCustomScale(row_, object, status_only)) {
      errors.push_back(std::move(error));
    }
    return errors;
  }

  const CustomRow& row_;
};

}  // namespace

std::unique_ptr<Strategy> MakeCustomStrategy(const CustomRow& row) {
  return std::make_unique<CustomStrategy>(row);
}

}  // namespace keelson::registry
