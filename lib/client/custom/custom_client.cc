#include "lib/client/custom/custom_client.h"

#include "lib/api/codec/codec.h"
#include "lib/client/metadata_client.h"
#include "lib/client/request.h"

namespace keelson::client {
namespace {

constexpr std::chrono::seconds kPatience{30};
constexpr char kJson[] = "application/json";

}  // namespace

api::ResourceInfo CustomRow(std::string_view group, std::string_view version, std::string_view resource,
                            std::string_view kind, bool namespaced) {
  api::ResourceInfo row{};
  row.group = row.kind_group = group;
  row.version = row.kind_version = version;
  row.resource = resource;
  row.kind = kind;
  row.message = api::kCustomMessage;
  row.namespaced = namespaced;
  row.verbs = "delete,deletecollection,get,list,patch,create,update,watch";
  return row;
}

CustomClient CustomClient::With(std::stop_token stop) const {
  CustomClient copy(api_.With(stop));
  copy.stop_ = std::move(stop);
  return copy;
}

Result<CustomObject> CustomClient::Send(std::string_view method, const api::ResourceInfo& row,
                                        std::string_view ns, std::string_view name,
                                        std::string_view subresource, const CustomObject* body) const {
  ApiRequest request;
  request.method = method;
  request.target = ResourcePath(row, ns, name, subresource);
  request.accept = kJson;
  if (body) {
    request.content_type = kJson;
    request.body = api::EncodeJson(*body, row.Gvk());
  }
  KEELSON_ASSIGN_OR_RETURN(const ApiResponse response, Answered(api_.transport(), request, kPatience, stop_));
  CustomObject out;
  const Result<> decoded = api::DecodeJson(response.body, out);
  if (!decoded) return Error(Code::kInternal, decoded.error().Wrap("reply of the API server").message());
  return out;
}

Result<CustomObject> CustomClient::Get(const api::ResourceInfo& row, std::string_view ns,
                                       std::string_view name) const {
  return Send("GET", row, ns, name, "", nullptr);
}

Result<std::vector<CustomObject>> CustomClient::List(const api::ResourceInfo& row, std::string_view ns,
                                                     const ListOptions& options) const {
  std::vector<CustomObject> out;
  KEELSON_RETURN_IF_ERROR(api_.ListEach(row, ns, options, nullptr, [&](std::string_view raw) -> Result<> {
    return RestClient::DecodeInto(raw, out.emplace_back());
  }));
  return out;
}

Result<CustomObject> CustomClient::Create(const api::ResourceInfo& row, const CustomObject& object) const {
  return Send("POST", row, object.metadata().namespace_(), "", "", &object);
}

Result<CustomObject> CustomClient::Update(const api::ResourceInfo& row, const CustomObject& object,
                                          std::string_view subresource) const {
  const metav1::ObjectMeta& meta = object.metadata();
  return Send("PUT", row, meta.namespace_(), meta.name(), subresource, &object);
}

Result<> CustomClient::Delete(const api::ResourceInfo& row, std::string_view ns, std::string_view name,
                              const DeleteOptions& options) const {
  return MetadataClient(api_).With(stop_).Delete(row, ns, name, options);
}

Result<CustomObject> CustomClient::UpdateWithRetry(
    const api::ResourceInfo& row, std::string_view ns, std::string_view name, std::string_view subresource,
    const std::function<Result<bool>(CustomObject&)>& change) const {
  for (int attempt = 0;; ++attempt) {
    KEELSON_ASSIGN_OR_RETURN(CustomObject object, Get(row, ns, name));
    KEELSON_ASSIGN_OR_RETURN(const bool changed, change(object));
    if (!changed) return object;
    Result<CustomObject> stored = Update(row, object, subresource);
    if (stored || !stored.error().Is(Code::kConflict) || attempt == 4) return stored;
  }
}

}  // namespace keelson::client
