#include "controlplane/apiextensions/converter.h"
#include "controlplane/apiextensions/custom_objects.h"
#include "controlplane/storage/convert.h"

namespace keelson::storage {
namespace {

using apiextensions::CustomRow;
using apiextensions::Versioned;

Result<std::vector<std::unique_ptr<api::Message>>> CallWebhook(const CustomRow& to,
                                                               const std::vector<Versioned>& objects,
                                                               const etcd::Limits& limits) {
  std::shared_ptr<const apiextensions::Definition> definition = to.owner->definition();
  std::shared_ptr<apiextensions::Converter> converter = to.owner->converter();
  if (!definition) {
    return Error(Code::kInternal, "conversion webhook: the custom resource definition is gone");
  }
  if (!converter) return Error(Code::kInternal, "conversion webhook: this server calls none");
  KEELSON_ASSIGN_OR_RETURN(std::vector<std::unique_ptr<api::Message>> converted,
                           converter->Convert(*definition, to, objects, limits.deadline));
  for (std::unique_ptr<api::Message>& object : converted) object = apiextensions::Relabel(to, *object);
  return converted;
}

}  // namespace

bool ConvertsByWebhook(const api::ResourceInfo& info) {
  if (!info.IsCustom()) return false;
  std::shared_ptr<const apiextensions::Definition> definition =
      apiextensions::CustomOf(info)->owner->definition();
  return definition && definition->converts_by_webhook;
}

bool NeedsWebhook(const api::ResourceInfo& from, const api::ResourceInfo& to) {
  return &from != &to && from.version != to.version && ConvertsByWebhook(to);
}

Result<> ConvertAll(std::vector<ObjectPtr>& objects, const api::ResourceInfo& info,
                    const etcd::Limits& limits) {
  std::vector<Versioned> foreign;
  std::vector<size_t> places;
  for (size_t i = 0; i < objects.size(); ++i) {
    if (!NeedsWebhook(objects[i]->info(), info)) continue;
    foreign.push_back({apiextensions::CustomOf(objects[i]->info()), objects[i]->Decode()});
    places.push_back(i);
  }
  if (!foreign.empty()) {
    KEELSON_ASSIGN_OR_RETURN(std::vector<std::unique_ptr<api::Message>> converted,
                             CallWebhook(*apiextensions::CustomOf(info), foreign, limits));
    for (size_t i = 0; i < places.size(); ++i) {
      objects[places[i]] = objects[places[i]]->As(info, *converted[i]);
    }
  }
  for (ObjectPtr& object : objects) object = object->In(info);
  return {};
}

Result<ObjectPtr> ConvertOne(ObjectPtr object, const api::ResourceInfo& info, const etcd::Limits& limits) {
  if (!object) return object;
  std::vector<ObjectPtr> one = {std::move(object)};
  KEELSON_RETURN_IF_ERROR(ConvertAll(one, info, limits));
  return std::move(one[0]);
}

Result<std::unique_ptr<api::Message>> ConvertMessage(const api::ResourceInfo& from,
                                                     const api::Message& message, const api::ResourceInfo& to,
                                                     const etcd::Limits& limits) {
  if (!NeedsWebhook(from, to)) return Convert(message, to);
  std::shared_ptr<api::Message> copy(message.New());
  copy->CopyFrom(message);
  KEELSON_ASSIGN_OR_RETURN(
      std::vector<std::unique_ptr<api::Message>> converted,
      CallWebhook(*apiextensions::CustomOf(to), {{apiextensions::CustomOf(from), std::move(copy)}}, limits));
  return std::move(converted[0]);
}

}  // namespace keelson::storage
