#include "lib/client/wire.h"

#include <gtest/gtest.h>

#include "lib/api/types.h"

namespace keelson::client {
namespace {

corev1::Pod WithManagers(int count) {
  corev1::Pod pod;
  pod.mutable_metadata()->set_name("p");
  pod.mutable_metadata()->set_namespace_("default");
  pod.mutable_metadata()->set_generation(7);
  pod.mutable_metadata()->add_finalizers("example.com/f");
  pod.mutable_spec()->set_node_name("n1");
  for (int i = 0; i < count; ++i) {
    auto& entry = *pod.mutable_metadata()->add_managed_fields();
    entry.set_manager("manager-" + std::to_string(i));
    entry.mutable_fields_v1()->set_raw(std::string(100, 'x'));
  }
  return pod;
}

TEST(TrimObjectTest, LeavesOutManagedFields) {
  for (int count : {0, 1, 5}) {
    const Result<std::string> kept = TrimObject(WithManagers(count).SerializeAsString(), false);
    ASSERT_TRUE(kept);
    EXPECT_EQ(*kept, WithManagers(0).SerializeAsString()) << count;
  }
}

TEST(TrimObjectTest, LeavesOutAllButMetadata) {
  const Result<std::string> kept = TrimObject(WithManagers(2).SerializeAsString(), true);
  ASSERT_TRUE(kept);
  corev1::Pod expected = WithManagers(0);
  expected.clear_spec();
  EXPECT_EQ(*kept, expected.SerializeAsString());
}

TEST(TrimObjectTest, KeepsLargeMetadata) {
  corev1::Pod pod = WithManagers(0);
  (*pod.mutable_metadata()->mutable_annotations())["a"] = std::string(100'000, 'y');
  const Result<std::string> kept = TrimObject(pod.SerializeAsString(), false);
  ASSERT_TRUE(kept);
  EXPECT_EQ(*kept, pod.SerializeAsString());
}

TEST(TrimObjectTest, RefusesWhatIsCutOff) {
  const std::string whole = WithManagers(1).SerializeAsString();
  for (const size_t size : {size_t{1}, size_t{10}, whole.size() - 1}) {
    const Result<std::string> kept = TrimObject(std::string_view(whole).substr(0, size), false);
    ASSERT_FALSE(kept) << size;
    EXPECT_TRUE(kept.error().Is(Code::kBadRequest));
  }
}

}  // namespace
}  // namespace keelson::client
