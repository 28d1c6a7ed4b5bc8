#include "tests/netns/crowd.h"

#include <sys/resource.h>

#include <algorithm>

namespace keelson::netns {
namespace {

constexpr const char* kClients[] = {"pod1", "pod2", "node", "outside", "stranger"};
constexpr const char* kEntries[] = {"cluster", "nodeport", "external"};

}  // namespace

Result<> Crowd::MayOpen(size_t connections) {
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = std::min<rlim_t>(files.rlim_max, 8192);
  // Both ends of each are this process's, and some files more.
  if (::setrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur < 2 * connections + 200) {
    return Error(Code::kUnavailable, "too few files allowed");
  }
  return {};
}

Result<> Crowd::Join(int count) {
  for (int i = 0; i < count; ++i) {
    const char* client = kClients[i % 5];
    const char* entry = kEntries[i % 3];
    Question question = world_.From(client, true);
    std::tie(question.to, question.port) = block_.Destination(entry, true);
    world_.Become(client);
    Result<Conversation> one = Conversation::Open(world_.Place(client), question);
    if (!one) return one.error().Wrap(std::string(client) + " to " + entry + ", number " + std::to_string(i));
    open_.push_back(std::move(*one));
  }
  return {};
}

// All speak before the first one listens.
int Crowd::Dead() {
  std::vector<Conversation*> said;
  for (Conversation& one : open_) {
    if (one.Says()) said.push_back(&one);
  }
  const auto heard = std::count_if(said.begin(), said.end(), [](Conversation* one) { return one->Hears(); });
  return static_cast<int>(open_.size()) - static_cast<int>(heard);
}

void Crowd::Reset() {
  for (Conversation& one : open_) one.Reset();
  open_.clear();
}

void Crowd::Vanish() {
  for (Conversation& one : open_) one.Vanish();
  open_.clear();
}

}  // namespace keelson::netns
