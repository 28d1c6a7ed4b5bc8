#include <map>
#include <memory>
#include <mutex>

#include "lib/api/patch/patch.h"
#include "lib/api/type_table.h"

namespace keelson::api {
namespace {

class DescriptorView : public TypeView {
 public:
  explicit DescriptorView(const MessageInfo& info) : info_(info) {}

  bool Find(std::string_view json_name, Field& out) const override {
    int index = info_.LookUp(json_name);
    if (index < 0) return false;
    const FieldInfo& field = *info_.keys[index].field;
    const auto& options = field.descriptor->options();
    const std::string& strategy = options.GetExtension(patch_strategy);
    out = Field();
    out.merge = Has(strategy, "merge");
    out.retain_keys = Has(strategy, "retainKeys");
    out.replace = Has(strategy, "replace");
    out.merge_key = options.GetExtension(patch_merge_key);
    out.map = field.map;
    // Only plain objects and schemas merge by field; anything else is one value, or free-form.
    if (field.kind != ValueKind::kMessage) return true;
    if (field.message->form == JSON_OBJECT) out.type = &TypeViewOf(field.message->descriptor);
    return true;
  }

 private:
  static bool Has(std::string_view strategies, std::string_view name) {
    for (size_t start = 0; start <= strategies.size();) {
      size_t end = std::min(strategies.find(',', start), strategies.size());
      if (strategies.substr(start, end - start) == name) return true;
      start = end + 1;
    }
    return false;
  }

  const MessageInfo& info_;
};

}  // namespace

const TypeView& TypeViewOf(const Descriptor* descriptor) {
  static auto* mutex = new std::mutex;
  static auto* views = new std::map<const Descriptor*, std::unique_ptr<DescriptorView>>;
  const MessageInfo& info = InfoOf(descriptor);
  std::lock_guard lock(*mutex);
  auto& view = (*views)[descriptor];
  if (!view) view = std::make_unique<DescriptorView>(info);
  return *view;
}

}  // namespace keelson::api
