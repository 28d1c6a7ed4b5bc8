#include "lib/client/watch.h"

#include <gtest/gtest.h>

#include "lib/api/codec/codec.h"
#include "lib/api/meta.h"

namespace keelson::client {
namespace {

corev1::ConfigMap Named(const std::string& name) {
  corev1::ConfigMap map;
  map.mutable_metadata()->set_name(name);
  return map;
}

std::string Enveloped(const google::protobuf::Message& object) {
  return api::EncodeProtobuf(object, api::GvkOf(object.GetDescriptor()));
}

TEST(FrameReaderTest, CutsFramesWhateverThePieces) {
  std::string bytes;
  for (const char* name : {"a", "bb", "ccc"}) bytes += EncodeWatchFrame("ADDED", Enveloped(Named(name)));
  for (size_t piece : {size_t{1}, size_t{3}, size_t{7}, bytes.size()}) {
    FrameReader reader;
    std::vector<std::string> names;
    for (size_t at = 0; at < bytes.size(); at += piece) {
      reader.Append(std::string_view(bytes).substr(at, piece));
      for (;;) {
        auto frame = reader.Next();
        ASSERT_TRUE(frame);
        if (!*frame) break;
        auto event = DecodeWatchEvent(**frame);
        ASSERT_TRUE(event) << event.error().message();
        corev1::ConfigMap map;
        ASSERT_TRUE(api::DecodeRaw(event->raw, map));
        names.push_back(map.metadata().name());
      }
    }
    EXPECT_EQ(names, (std::vector<std::string>{"a", "bb", "ccc"})) << "pieces of " << piece;
  }
}

TEST(FrameReaderTest, RefusesAbsurdLengths) {
  FrameReader reader;
  reader.Append("\x7f\xff\xff\xff rest");
  EXPECT_FALSE(reader.Next());
}

TEST(DecodeWatchEventTest, UnderstandsAnEnvelopedEventToo) {
  std::string frame = EncodeWatchFrame("MODIFIED", Enveloped(Named("a"))).substr(4);
  metav1::WatchEvent bare;
  ASSERT_TRUE(bare.ParseFromString(frame));
  auto event = DecodeWatchEvent(api::EncodeProtobuf(bare, {"", "v1", "WatchEvent"}));
  ASSERT_TRUE(event) << event.error().message();
  EXPECT_EQ(event->type, WatchEvent::Type::kModified);
}

TEST(DecodeWatchEventTest, ErrorEventIsAnError) {
  metav1::Status status = api::ToStatus(Error(Code::kGone, "too old resource version: 1 (5)"));
  std::string frame = EncodeWatchFrame("ERROR", api::EncodeProtobuf(status, {"", "v1", "Status"})).substr(4);
  auto event = DecodeWatchEvent(frame);
  ASSERT_FALSE(event);
  EXPECT_EQ(event.error().code(), Code::kGone);
}

// Extension API servers may speak JSON alone.
TEST(DecodeWatchEventTest, LinesOfJsonCarryMetadata) {
  FrameReader reader;
  const std::string lines =
      R"({"type":"ADDED","object":{"kind":"F","apiVersion":"g/v1","metadata":{"name":"a"},"spec":{"x":[1]}}})"
      "\n"
      R"({"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"7"}}})"
      "\n";
  std::vector<std::string> have;
  for (char c : lines) {
    reader.Append(std::string(1, c));
    const auto frame = reader.Next();
    ASSERT_TRUE(frame);
    if (!*frame) continue;
    const auto event = DecodeWatchEvent(**frame);
    ASSERT_TRUE(event) << event.error().message();
    metav1::PartialObjectMetadata object;
    ASSERT_TRUE(api::DecodeRaw(event->raw, object));
    have.push_back(object.metadata().name() + object.metadata().resource_version());
  }
  EXPECT_EQ(have, (std::vector<std::string>{"a", "7"}));
  const auto gone = DecodeWatchEvent(
      R"({"type":"ERROR","object":{"kind":"Status","status":"Failure","reason":"Expired","code":410}})");
  ASSERT_FALSE(gone);
  EXPECT_TRUE(gone.error().Is(Code::kGone));
}

TEST(DecodeWatchEventTest, GarbageIsAnError) {
  for (std::string_view bytes :
       {"", "\x0a\xff", "garbage", "k8s\0garbage", "{", "{}", R"({"type":"ADDED","object":[]})"}) {
    EXPECT_FALSE(DecodeWatchEvent(bytes));
  }
}

}  // namespace
}  // namespace keelson::client
