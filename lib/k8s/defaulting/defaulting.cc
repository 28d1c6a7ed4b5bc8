#include "lib/k8s/defaulting/defaulting.h"

#include "lib/k8s/defaulting/table.h"

namespace keelson::k8s {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

namespace {

const DefaultTable& Table() {
  static const DefaultTable* const table = [] {
    auto* made = new DefaultTable;
    RegisterPodDefaults(*made);
    RegisterServiceDefaults(*made);
    RegisterWorkloadDefaults(*made);
    RegisterAutoscalingDefaults(*made);
    RegisterConfigDefaults(*made);
    RegisterStorageDefaults(*made);
    RegisterNetworkingDefaults(*made);
    RegisterExtensionDefaults(*made);
    RegisterDeviceDefaults(*made);
    return made;
  }();
  return *table;
}

// The `items` of a list kind, or null.
const FieldDescriptor* ItemsOf(const Descriptor* descriptor) {
  const FieldDescriptor* field = descriptor->FindFieldByName("items");
  if (!field || !field->is_repeated() || field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) {
    return nullptr;
  }
  return field;
}

}  // namespace

void SetDefaults(Message& object) {
  const Descriptor* descriptor = object.GetDescriptor();
  if (DefaultTable::Function function = Table().Find(descriptor)) {
    function(object);
    return;
  }
  const FieldDescriptor* items = ItemsOf(descriptor);
  if (!items) return;
  DefaultTable::Function function = Table().Find(items->message_type());
  if (!function) return;
  const Reflection* reflection = object.GetReflection();
  for (int i = 0; i < reflection->FieldSize(object, items); ++i) {
    function(*reflection->MutableRepeatedMessage(&object, items, i));
  }
}

}  // namespace keelson::k8s
