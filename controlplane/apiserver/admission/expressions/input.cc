#include "controlplane/apiserver/admission/expressions/input.h"

#include <boost/json/parse.hpp>

#include "controlplane/apiserver/admission/expressions/request_message.h"
#include "lib/api/codec/codec.h"
#include "lib/api/meta.h"
#include "lib/cel/values/json_view.h"
#include "lib/cel/values/message_view.h"
#include "lib/k8s/expressions/environment.h"

namespace keelson::apiserver {
namespace {

namespace json = boost::json;

// What the encoder has written parses.
json::value JsonOf(const api::Message& object, const api::GroupVersionKind& gvk) {
  json::parse_options options;
  options.max_depth = 1000;
  boost::system::error_code error;
  return json::parse(api::EncodeJson(object, gvk), error, {}, options);
}

}  // namespace

cel::Value ExpressionObject::Value(cel::Arena& arena) const {
  if (!object_) return cel::Value();
  if (!row_.IsCustom() || !api::IsCustom(object_->GetDescriptor())) {
    const api::GroupVersionKind gvk = row_.Gvk();
    return cel::MessageValue(*object_, arena, arena.Copy(gvk.ApiVersion()), row_.kind);
  }
  if (!json_) json_ = JsonOf(*object_, row_.Gvk());
  return cel::JsonValue(*json_, nullptr, arena);
}

// A map that is made when an expression first looks into it.
class ExpressionInput::DeferredMap : public cel::MapValue {
 public:
  size_t Size() const override { return Map().Size(); }
  bool Find(const cel::Value& key, cel::Value& out, cel::Arena& arena) const override {
    return Map().Find(key, out, arena);
  }
  cel::Value KeyAt(size_t index, cel::Arena& arena) const override { return Map().KeyAt(index, arena); }
  cel::Value ValueAt(size_t index, cel::Arena& arena) const override { return Map().ValueAt(index, arena); }

 protected:
  explicit DeferredMap(cel::Arena& arena) : arena_(arena) {}
  virtual cel::Value Make(cel::Arena& arena) const = 0;  // a map

 private:
  const cel::MapValue& Map() const {
    if (!made_) made_ = Make(arena_);
    return made_->map();
  }

  cel::Arena& arena_;
  mutable std::optional<cel::Value> made_;
};

class ExpressionInput::RequestMap : public DeferredMap {
 public:
  RequestMap(const ExpressionInput& input, cel::Arena& arena) : DeferredMap(arena), input_(input) {}

 private:
  cel::Value Make(cel::Arena& arena) const override {
    auto& message = input_.message_;
    if (!message) FillRequestMessage(input_.request_, input_.row_, message.emplace());
    return cel::MessageValue(*message, arena);
  }
  const ExpressionInput& input_;
};

class ExpressionInput::NamespaceMap : public DeferredMap {
 public:
  NamespaceMap(const ExpressionInput& input, cel::Arena& arena) : DeferredMap(arena), input_(input) {}

 private:
  cel::Value Make(cel::Arena& arena) const override {
    auto& known = input_.namespace_;
    if (!known) known = JsonOf(*input_.ns_, {"", "v1", "Namespace"});
    return cel::JsonValue(*known, k8s::NamespaceObjectType().get(), arena);
  }
  const ExpressionInput& input_;
};

ExpressionInput::ExpressionInput(const AdmissionRequest& request, const api::ResourceInfo& row,
                                 const api::Message* object, const api::Message* old_object,
                                 const corev1::Namespace* ns, const apiserver::Authorizer& authorizer)
    : request_(request),
      row_(row),
      object_(object, row),
      old_object_(old_object, row),
      ns_(ns),
      authorizer_(authorizer, request.user) {}

cel::Value ExpressionInput::Request(cel::Arena& arena) const {
  return cel::Value::Map(arena.New<RequestMap>(*this, arena));
}

cel::Value ExpressionInput::Namespace(cel::Arena& arena) const {
  return ns_ ? cel::Value::Map(arena.New<NamespaceMap>(*this, arena)) : cel::Value();
}

cel::Value ExpressionInput::Authorizer(cel::Arena& arena) const {
  return cel::AuthorizerVariable(authorizer_, arena);
}

cel::Value ExpressionInput::RequestResource(cel::Arena& arena) const {
  cel::AuthorizationQuestion question;
  question.group = request_.info.group;
  question.resource = request_.MainResource();
  question.subresource = request_.Subresource();
  question.namespace_name = request_.ns;
  question.name = request_.name;
  if (question.name.empty() && request_.object && api::HasObjectMeta(request_.object->GetDescriptor())) {
    question.name = api::Meta(*request_.object).name();
  }
  return cel::ResourceCheckVariable(authorizer_, std::move(question), arena);
}

}  // namespace keelson::apiserver
