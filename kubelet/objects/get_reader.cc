#include "kubelet/objects/reader.h"

namespace keelson::kubelet {

namespace {

class GetReader : public ObjectReader {
 public:
  explicit GetReader(ReaderParts parts) : parts_(std::move(parts)) {}

  Result<Object> Get(const std::string& ns, const std::string& name) override {
    std::shared_ptr<google::protobuf::Message> object(parts_.info.prototype().New());
    RETURN_IF_ERROR(parts_.api.GetInto(parts_.info, ns, name, *object));
    return Object(std::move(object));
  }

 private:
  const ReaderParts parts_;
};

}  // namespace

std::unique_ptr<ObjectReader> NewGetReader(ReaderParts parts) {
  return std::make_unique<GetReader>(std::move(parts));
}

}  // namespace keelson::kubelet
