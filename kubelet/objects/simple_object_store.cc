#include "kubelet/objects/object_store.h"

namespace keelson::kubelet {

namespace {

class SimpleObjectStore : public ObjectStore {
 public:
  explicit SimpleObjectStore(ObjectStoreDependencies dependencies) : deps_(std::move(dependencies)) {}

  Result<Object> Get(const std::string& ns, const std::string& name) override {
    std::shared_ptr<google::protobuf::Message> object(deps_.info.prototype().New());
    KEELSON_RETURN_IF_ERROR(deps_.api.GetInto(deps_.info, ns, name, *object));
    return Object(std::move(object));
  }

 private:
  const ObjectStoreDependencies deps_;
};

}  // namespace

std::unique_ptr<ObjectStore> NewSimpleObjectStore(ObjectStoreDependencies dependencies) {
  return std::make_unique<SimpleObjectStore>(std::move(dependencies));
}

}  // namespace keelson::kubelet
