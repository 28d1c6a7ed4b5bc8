// main() of all test programs.
#include <gmock/gmock.h>

#include "lib/event/loop.h"

int main(int argc, char** argv) {
  keelson::event::LoopsOfProcess loops;
  testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
