#include "controlplane/controllers/common/consistency_store.h"

#include <gtest/gtest.h>

namespace keelson::controllers {
namespace {

metav1::ObjectMeta At(const std::string& version) {
  metav1::ObjectMeta meta;
  meta.set_resource_version(version);
  return meta;
}

TEST(ConsistencyStoreTest, AnObjectIsShownWhenItIsNoOlderThanTheLastWrite) {
  struct Case {
    const char* what;
    std::vector<std::string> written;
    const char* stored;
    bool shown;
  };
  for (const Case& c :
       {Case{"nothing written", {}, "5", true}, Case{"older", {"9"}, "5", false},
        Case{"older by more digits", {"10"}, "9", false}, Case{"the same", {"9"}, "9", true},
        Case{"somebody wrote since", {"9"}, "12", true}, Case{"the last counts", {"9", "11"}, "10", false},
        Case{"no number", {"9"}, "x", true}, Case{"wrote no number", {"x"}, "5", true}}) {
    ConsistencyStore writes;
    for (const std::string& version : c.written) writes.WroteAt("ns/a", At(version));
    EXPECT_EQ(writes.IsReady("ns/a", At(c.stored)), c.shown) << c.what;
    EXPECT_TRUE(writes.IsReady("ns/b", At("1"))) << c.what;
  }
  ConsistencyStore writes;
  writes.WroteAt("ns/a", At("9"));
  writes.Clear("ns/a");
  EXPECT_TRUE(writes.IsReady("ns/a", At("5")));
}

}  // namespace
}  // namespace keelson::controllers
